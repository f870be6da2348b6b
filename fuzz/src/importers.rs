//! Importers: what comes out of them loads.

use crate::targets::context;
use mainstay_import::{Format, Imported};
use std::{fs, os::unix::fs::PermissionsExt, path::Path, sync::OnceLock};

/// Of Supvisors' section.
pub(crate) const OPTIONS: &[&str] = &[
    "[supvisors]\n",
    "[rpcinterface:supvisors]\n",
    "[program:x]\ncommand=x\n",
    "[group:g]\nprograms=x\n",
    "address_list=a,b\n",
    "supvisors_list=<n>h:1,",
    "core_identifiers=a\n",
    "stereotypes=s\n",
    "synchro_options=USER\n",
    "synchro_timeout=15\n",
    "auto_fence=true\n",
    "rules_files=/nonexistent/*\n",
    "%(ENV_HOME)s",
    "localhost,",
    "<>",
];

/// Of the rules.
pub(crate) const ELEMENTS: &[&str] = &[
    "<application name=\"web\">",
    "<application pattern=\"\">",
    "</application>",
    "<programs>",
    "</programs>",
    "<program pattern=\"w\">",
    "</program>",
    "<identifiers>#</identifiers>",
    "<identifiers>@,a,b</identifiers>",
    "<addresses>all</addresses>",
    "<alias name=\"all\">a,all</alias>",
    "<model name=\"m\">",
    "<reference>m</reference>",
    "</model>",
    "<start_sequence>1</start_sequence>",
    "<stop_sequence>2</stop_sequence>",
    "<required>true</required>",
    "<distribution>SINGLE_INSTANCE</distribution>",
    "<running_failure_strategy>RESTART_APPLICATION</running_failure_strategy>",
    "<!DOCTYPE a>",
    "(?=",
];

/// Of supervisord's sections.
pub(crate) const PROGRAMS: &[&str] = &[
    "[program:x]\n",
    "[group:g]\nprograms=",
    "[eventlistener:e]\n",
    "[fcgi-program:f]\n",
    "command=",
    "%(ENV_HOME)s",
    "%(here)s",
    "%(process_num)d",
    "numprocs=1000\n",
    "priority=",
    "stopsignal=",
    "exitcodes=",
    "environment=A=\"b\",",
    ";",
    "autorestart=",
    "startsecs=",
];

/// Of config_o_mat's files.
pub(crate) const CONF: &[&str] = &[
    "profiles:\n",
    "  p: {application: a, environment: b, profile: c}\n",
    "templates: {one: {src: one, dst: one}}\n",
    "services:\n",
    "  s: {systemd_unit: u, restart_mode: flip_flop, templates: [one]}\n",
    "restart_mode: restart_all",
    "s3_fallback: x\n",
    "fallback_s3_bucket: b\n",
    "facter: true\n",
    "refresh_interval: 5\n",
    "log_level: debug\n",
    "'u@'",
    "${",
];

/// Of its templates.
pub(crate) const RUBY: &[&str] = &[
    "<% ",
    "<%= ",
    "<%# ",
    " %>",
    " %>\n",
    "profiles[:app].contents",
    "[:a]",
    ".secrets[:s].contents",
    ".fetch(:a, nil)",
    "&.",
    ".each do |x|",
    "if ",
    "end",
    "else",
    " || ",
    " && ",
    "{{",
    "{%",
    "-%}",
];

/// A configuration that rules can be about.
const BESIDE: &str = "[rpcinterface:supvisors]\nsupvisors_list=a,<b>c:1,c:2\n\
     [program:web]\ncommand=x\nprocess_name=web_%(process_num)d\nnumprocs=3\n\
     [program:db]\ncommand=y\n[group:shop]\nprograms=web\n";

pub(crate) fn supvisors() -> Vec<Vec<u8>> {
    let of_cases = [
        include_str!("../../crates/import/tests/supvisors/old-names/supervisord.conf"),
        include_str!("../../crates/import/tests/supvisors/today/supervisord.conf"),
        BESIDE,
    ];
    of_cases.map(Vec::from).into()
}

pub(crate) fn rules_files() -> Vec<Vec<u8>> {
    let of_cases = [
        include_str!("../../crates/import/tests/supvisors/old-names/rules.xml"),
        include_str!("../../crates/import/tests/supvisors/models/rules.xml"),
        include_str!("../../crates/import/tests/supvisors/aliases/rules.xml"),
        "<root><application name=\"shop\"><programs><program pattern=\"web_\"><identifiers>@</identifiers>\
         </program></programs></application></root>",
    ];
    of_cases.map(Vec::from).into()
}

pub(crate) fn conf_files() -> Vec<Vec<u8>> {
    let of_cases = [
        include_str!("../../crates/import/tests/config-o-mat/modes/a.conf"),
        include_str!("../../crates/import/tests/config-o-mat/names/a.conf"),
        include_str!("../../crates/import/tests/config-o-mat/keys/a.conf"),
    ];
    of_cases.map(Vec::from).into()
}

pub(crate) fn erb_files() -> Vec<Vec<u8>> {
    let of_cases = [
        include_str!("../../crates/import/tests/config-o-mat/loops/templates/upstream.conf"),
        include_str!("../../crates/import/tests/config-o-mat/conditions/templates/t.conf"),
        include_str!("../../crates/import/tests/config-o-mat/signs/templates/t"),
    ];
    of_cases.map(Vec::from).into()
}

/// What comes out loads, but for variables that are not set here.
pub(crate) fn import(format: Format, input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let path = Path::new("/nonexistent/file");
    if let Ok(imported) = mainstay_import::import(format, &text, path, &context()) {
        loads(&imported);
    }
}

/// Rules beside a configuration.
pub(crate) fn rules(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let beside = (Path::new("/nonexistent/file"), BESIDE);
    let rules = [(Path::new("/nonexistent/rules.xml"), text.as_ref())];
    let imported = mainstay_import::import_texts(Format::Supvisors, beside, &rules, &context());
    if let Ok(imported) = imported {
        loads(&imported);
    }
}

/// Beside templates that are there.
pub(crate) fn config_o_mat(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let beside = env!("CARGO_MANIFEST_DIR").to_owned();
    let path = format!("{beside}/../crates/import/tests/config-o-mat/modes/input.conf");
    let format = Format::ConfigOMat;
    if let Ok(imported) = mainstay_import::import(format, &text, Path::new(&path), &context()) {
        loads(&imported);
    }
}

/// A template becomes one that does not grow without end, the same each time.
pub(crate) fn erb(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let made = mainstay_import::config_o_mat_template(&text, &["app"]);
    assert_eq!(made, mainstay_import::config_o_mat_template(&text, &["app"]));
    assert!(made.len() <= 1000 * (text.len() + 1), "{}", made.len());
}

fn loads(imported: &Imported) {
    let unset = |message: &str| message.ends_with("is not set");
    let mut ctx = context();
    ctx.env.insert("MAINSTAY_FLEET_KEY".to_owned(), key().to_owned());
    if let Err(errors) = mainstay_config::parse("x.toml", &imported.toml, &ctx)
        && !errors.iter().all(|error| unset(&error.message))
    {
        panic!("{}\n---\n{}", errors.render(false), imported.toml);
    }
}

/// A fleet needs one.
fn key() -> &'static str {
    static KEY: OnceLock<String> = OnceLock::new();
    KEY.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("mainstay-fuzz-key-{}", std::process::id()));
        let written = fs::write(&path, "0123456789abcdef0123456789abcdef\n");
        let own =
            written.and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o600)));
        own.expect("a directory for temporary files");
        path.display().to_string()
    })
}
