//! What configurations of Supvisors become, case by case: a folder of `tests/supvisors` each.
//! `MAINSTAY_GOLDEN=write` writes the expected ones anew.

use super::context;
use mainstay_config::{Context, parse};
use mainstay_core::plan::{Distribution, Plan};
use mainstay_import::{Format, Imported, import_file, import_texts};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::OnceLock,
};

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/supvisors")
}

/// A fleet needs a key.
pub(super) fn with_key() -> Context {
    static KEY: OnceLock<PathBuf> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("mainstay-fleet-key-{}", std::process::id()));
        fs::write(&path, "0123456789abcdef0123456789abcdef\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    });
    let mut ctx = context();
    ctx.env.insert("MAINSTAY_FLEET_KEY".to_owned(), key.display().to_string());
    ctx
}

fn imported(case: &str) -> Imported {
    let file = dir().join(case).join("supervisord.conf");
    let mut imported =
        import_file(Format::Supvisors, &file, &context()).unwrap_or_else(|e| panic!("{e}"));
    let here = format!("{}/", dir().join(case).display());
    imported.toml = imported.toml.replace(&here, "");
    imported
}

fn plan(toml: &str) -> Plan {
    let loaded = parse("imported.toml", toml, &with_key());
    loaded.unwrap_or_else(|errors| panic!("{toml}\n{errors}")).plan
}

#[test]
fn every_case_becomes_what_it_is_expected_to() {
    let mut cases = 0;
    for entry in fs::read_dir(dir()).unwrap() {
        let case = entry.unwrap().file_name().into_string().unwrap();
        let imported = imported(&case);
        plan(&imported.toml);
        let path = dir().join(&case).join("expected.toml");
        if std::env::var_os("MAINSTAY_GOLDEN").is_some_and(|it| it == "write") {
            fs::write(&path, &imported.toml).unwrap();
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert!(imported.toml == expected, "not as in {}:\n{}", path.display(), imported.toml);
        cases += 1;
    }
    assert!(cases >= 13, "{cases} cases");
}

fn nodes(plan: &Plan, job: &str) -> Vec<String> {
    let place = &plan.job(job).unwrap_or_else(|| panic!("no job {job}")).place;
    place.nodes.iter().map(|node| node.as_str().to_owned()).collect()
}

#[test]
fn names_of_0_8_and_of_today_make_the_same_kind_of_fleet() {
    let old = plan(&imported("old-names").toml);
    let fleet = old.fleet.as_ref().unwrap();
    let names: Vec<&str> = fleet.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["host-1", "host-3", "host-2"]);
    assert_eq!(fleet.core.len(), 2);
    // Lowest first, as it is written.
    assert_eq!(old.job("recorder").unwrap().place.stop_sequence, 3);
    assert_eq!(old.job("archiver").unwrap().place.load, 5);
    let screens = old.apps.iter().find(|app| app.name.as_str() == "screens").unwrap();
    assert_eq!(screens.distribution, Distribution::OneNode);

    let today = plan(&imported("today").toml);
    assert_eq!(today.node.name, "gamma");
    assert!(today.fleet.as_ref().unwrap().auto_fence);
    assert_eq!(nodes(&today, "encoder_01"), ["beta", "gamma"]);
    assert_eq!(nodes(&today, "mux"), ["alpha"]);
}

#[test]
fn signs_divide_the_processes_of_a_program() {
    let hash = plan(&imported("hash").toml);
    let all: Vec<String> =
        (0..5).flat_map(|number| nodes(&hash, &format!("converter_0{number}"))).collect();
    assert_eq!(all, ["host-1", "host-2", "host-3", "host-1", "host-2"]);
    assert_eq!(nodes(&hash, "sensor_1"), ["host-3"]);
    let at = plan(&imported("at").toml);
    assert_eq!(
        (nodes(&at, "agent_0"), nodes(&at, "agent_1")),
        (vec!["host-1".to_owned()], vec!["host-2".to_owned()])
    );
    let third = at.job("agent_2").unwrap();
    assert_eq!((third.place.start_sequence, third.place.required), (0, false));
}

#[test]
fn greatest_first_becomes_lowest_first() {
    let plan = plan(&imported("stops").toml);
    let stop = |job: &str| plan.job(job).unwrap().place.stop_sequence;
    assert_eq!((stop("one"), stop("two")), (8, 0));
    let app = |name: &str| plan.apps.iter().find(|app| app.name.as_str() == name).unwrap().clone();
    assert_eq!((app("explicit").stop_sequence, app("mirrored").stop_sequence), (0, 2));
    assert_eq!(app("mirrored").stop_sequence_of(&plan.job("four").unwrap().place), u32::MAX - 4);
}

/// What would not be a fleet of rules is an error that says where.
#[test]
fn rules_that_cannot_be_taken_are_errors() {
    let ini = "[rpcinterface:supvisors]\nsupvisors_list=host-1,b\n[program:a]\ncommand=x\n";
    let deep = format!("<root>{}{}</root>", "<a>".repeat(64), "</a>".repeat(64));
    let large = format!("<root><!--{}--></root>", "x".repeat(1 << 20));
    for (rules, told) in [
        ("<!DOCTYPE root [<!ENTITY a 'b'>]>\n<root/>", "r.xml:1"),
        ("<root>\n<application pattern='a(?=b)'/></root>", "r.xml:2"),
        (&deep, "64 elements deep"),
        (&large, "1 MiB"),
        ("<root><application></root>", "r.xml:1"),
    ] {
        let (first, rules) = ((Path::new("s.conf"), ini), [(Path::new("r.xml"), rules)]);
        let errors = import_texts(Format::Supvisors, first, &rules, &context()).unwrap_err();
        assert!(errors.to_string().contains(told), "{told}: {errors}");
    }
    for (ini, told) in [
        ("[program:a]\ncommand=x\n", "neither [supvisors]"),
        ("[supvisors]\naddress_list=a b\n[program:a]\ncommand=x\n", "'a b' is neither"),
        ("[supvisors]\nrules_file=%(nope)s\n[program:a]\ncommand=x\n", "s.conf:2"),
        ("<root/>", "a file of rules"),
    ] {
        let first = (Path::new("s.conf"), ini);
        let errors = import_texts(Format::Supvisors, first, &[], &context()).unwrap_err();
        assert!(errors.to_string().contains(told), "{told}: {errors}");
    }
}

/// Each option and element leaves a trace: in the file, or in a note.
#[test]
fn nothing_is_lost_silently() {
    for key in [
        "inactivity_ticks=3",
        "supvisors_failure_strategy=SHUTDOWN",
        "multicast_group=239.0.0.1:1",
        "multicast_interface=ANY",
        "event_link=WS",
        "internal_port=65001",
        "disabilities_file=/x",
        "stats_enabled=all",
        "stats_irix_mode=true",
        "tailf_limit=1KB",
        "css_files=*.css",
        "logfile_backups=3",
        "stereotypes=x",
        "synchro_options=LIST",
        "synchro_timeout=5",
        "auto_fence=perhaps",
        "starting_strategy=BEST",
        "conciliation_strategy=ASK",
        "core_identifiers=nobody",
        "rules_files=gone.xml",
        "surprise=1",
    ] {
        let ini = format!(
            "[rpcinterface:supvisors]\nsupvisors_list=host-1,b\n{key}\n[program:a]\ncommand=x\n"
        );
        let imported =
            import_texts(Format::Supvisors, (Path::new("/s.conf"), &ini), &[], &context()).unwrap();
        let name = key.split('=').next().unwrap();
        let told = imported
            .notes
            .iter()
            .any(|note| note.line == Some(3) && note.message.starts_with(name));
        assert!(told, "{key}: {:?}", imported.notes);
    }
}
