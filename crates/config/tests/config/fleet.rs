//! What `[fleet]` makes of a plan.

use super::{context, files::Dir};
use mainstay_config::{Kind, Loaded, keys, load};
use mainstay_core::{
    fleet::{Catalogue, Conciliation, FleetRules, Strategy},
    name::Name,
    plan::{ExitRule, Spread, WavePlan},
    rollout::WaveSize,
};
use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

/// A directory with a key and a configuration.
fn dir(test: &str, mode: u32, fleet: &str) -> Dir {
    let key = ("fleet.key", &b"0123456789abcdef"[..]);
    let dir = Dir::new(&format!("fleet-{test}"), &[key, ("mainstay.toml", fleet.as_bytes())]);
    fs::set_permissions(dir.0.join("fleet.key"), fs::Permissions::from_mode(mode)).unwrap();
    dir
}

fn load_from(dir: &Dir) -> Loaded {
    load(&dir.0, &context()).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

const SHOP: &str = r#"
[fleet]
name = "shop"
nodes = ["web-2=10.0.0.2:7072", "host-1=10.0.0.1", "db-1"]
core = ["host-1"]
sync_timeout = "3s"
order_timeout = "1s"
tick = "500ms"
auto_fence = true
strategy = "less-loaded"
conciliation = "senicide"
key_file = "fleet.key"

[apps.shop]
strategy = "local"
nodes = ["web-*", "host-1"]

[jobs.cart]
exec = "./cart ${GREETING}"
app = "shop"
place = { load = 25, on_failure = "restart-process" }

[jobs.till]
exec = "./till"
instances = 3
app = "shop"
place = { nodes = ["*"], spread = "even" }

[jobs.lone]
exec = "./lone"
"#;

#[test]
fn a_fleet_is_read_into_the_rules_of_its_machines() {
    let dir = dir("rules", 0o600, SHOP);
    let loaded = load_from(&dir);
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    let plan = loaded.plan;
    let fleet = plan.fleet.as_ref().unwrap();
    assert_eq!(fleet.listen, "10.0.0.1:7071".parse().unwrap(), "where nodes has it");
    assert_eq!(fleet.key_file, dir.0.join("fleet.key"));
    let addresses: Vec<&str> = fleet.nodes.iter().map(|node| node.address.as_str()).collect();
    assert_eq!(addresses, ["10.0.0.2:7072", "10.0.0.1:7071", "db-1:7071"]);
    assert_eq!(plan.node.exit, ExitRule::Never);
    let rules = FleetRules::of(fleet);
    assert_eq!(rules.nodes, [name("web-2"), name("host-1"), name("db-1")]);
    assert_eq!((rules.strategy, rules.auto_fence), (Strategy::LessLoaded, true));
    assert_eq!(rules.conciliation, Conciliation::Senicide);
    assert_eq!(rules.order_timeout, Duration::from_secs(1));
    let catalogue = Catalogue::of(&plan);
    let known: Vec<&str> = catalogue.jobs.keys().map(Name::as_str).collect();
    assert_eq!(known, ["cart", "till-1", "till-2", "till-3"], "those of apps only");
    let app = catalogue.app(&name("shop"));
    assert_eq!(app.unwrap().strategy, Some(Strategy::Local));
    let nodes = |job: &str| catalogue.jobs[job].nodes(app, &rules.nodes);
    assert_eq!(nodes("cart"), [name("web-2"), name("host-1")]);
    assert_eq!(nodes("till-1"), [name("web-2")]);
    assert_eq!(nodes("till-3"), [name("db-1")]);
    assert_eq!(catalogue.jobs["till-2"].place.spread, Some(Spread::Even));
    assert_eq!(catalogue.jobs["cart"].place.load, 25);
}

#[test]
fn two_nodes_know_the_same_job_whatever_their_environment_is() {
    let definition = |text: &str, greeting: &str| {
        let mut ctx = context();
        ctx.env.insert("GREETING".to_owned(), greeting.to_owned());
        let loaded = mainstay_config::parse("test.toml", text, &ctx);
        loaded.unwrap_or_else(|errors| panic!("{}", errors.render(false))).plan.jobs[0].definition
    };
    let job = "[jobs.cart]\nexec = \"./cart ${GREETING}\"\nenv = { A = \"1\" }\n";
    let here = definition(job, "hello");
    assert_ne!(here, 0);
    assert_eq!(definition(job, "good day"), here);
    let laid_out = "# the cart\n[jobs.cart]\nenv.A = '1'\nexec = './cart ${GREETING}'\n";
    assert_eq!(definition(laid_out, "hello"), here);
    assert_ne!(definition("[jobs.cart]\nexec = \"./cart\"\nenv = { A = \"1\" }\n", "hello"), here);
}

#[test]
fn every_key_accepts_its_documented_default_and_nothing_changes() {
    let least = "[fleet]\njoin = [\"a\"]\nlisten = \"127.0.0.1:7071\"\nkey_file = \"fleet.key\"\n";
    let job = "[jobs.a]\nexec = \"a\"\n";
    let dir = dir("defaults", 0o600, &format!("{least}{job}"));
    let bare = load_from(&dir).plan;
    let words = |kind| match kind {
        Kind::OneOf(words) => words.iter().map(|word| format!("\"{word}\"")).collect(),
        _ => Vec::new(),
    };
    for key in keys().iter().filter(|key| key.table == "fleet") {
        let write = |value: &str| {
            let text = format!("{least}{} = {value}\n{job}", key.name);
            fs::write(dir.0.join("mainstay.toml"), text).unwrap();
            load_from(&dir).plan
        };
        if !key.default.is_empty() {
            assert_eq!(write(key.default), bare, "{}", key.name);
        }
        let words: Vec<String> = words(key.kind);
        words.iter().for_each(|word| drop(write(word)));
    }
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    for mode in [0o644, 0o640, 0o602] {
        let told = dir(&format!("key-{mode:o}"), mode, SHOP).refused();
        assert!(told.contains("DIR/fleet.key is accessible to others"), "{told}");
        assert!(told.contains("chmod go="), "{told}");
    }
}

#[test]
fn whoever_may_join_says_where_it_listens() {
    let join = |rest: &str| {
        format!(
            "[fleet]\njoin = [\"web-1\"]\nkey_file = \"fleet.key\"\n{rest}\n[jobs.a]\nexec = \"a\"\n"
        )
    };
    let told = dir("join-nowhere", 0o600, &join("")).refused();
    assert!(told.contains("'listen' is missing"), "{told}");
    let loaded =
        load_from(&dir("join", 0o600, &join("listen = \"127.0.0.1:7071\"\ncore = [\"far\"]")));
    let fleet = loaded.plan.fleet.unwrap();
    assert_eq!(fleet.join, ["web-1:7071"]);
    assert_eq!((fleet.name.as_str(), fleet.core), ("fleet", vec![name("far")]));
}

#[test]
fn waves_of_a_rollout_are_a_number_or_a_share_and_mean_nothing_without_a_fleet() {
    let fleet = |rollout: &str| {
        format!(
            "[fleet]\njoin = [\"web-1\"]\nkey_file = \"fleet.key\"\nlisten = \"127.0.0.1:7071\"\n\
             [rollout]\n{rollout}\n[profiles.app]\nsource = \"file\"\npath = \"/app\"\n\
             [templates.conf]\nsrc = \"/x.j2\"\ndst = \"/x\"\nprofiles = [\"app\"]\n"
        )
    };
    let wave =
        |rollout: &str| load_from(&dir("wave", 0o600, &fleet(rollout))).plan.rollout.unwrap().wave;
    let plan =
        |size: WaveSize, seconds: u64| Some(WavePlan { size, pause: Duration::from_secs(seconds) });
    assert_eq!(wave("wave = \"10%\""), plan(WaveSize::Percent(10), 30));
    assert_eq!(wave("wave = 3\npause = \"0s\""), plan(WaveSize::Nodes(3), 0));
    assert_eq!(wave("failure_timeout = \"1m\""), None);
    for wrong in ["wave = 0", "wave = \"0%\"", "wave = \"101%\"", "wave = \"ten\"", "wave = true"] {
        let told = dir("bad-wave", 0o600, &fleet(wrong)).refused();
        assert!(told.contains("rollout.wave"), "{wrong}: {told}");
    }
    let alone = fleet("wave = 2\npause = \"1m\"");
    let alone = &alone[alone.find("[rollout]").unwrap()..];
    let warned = |text: &str| {
        let loaded = load_from(&dir("lonely-wave", 0o600, text));
        let told: Vec<String> = loaded.warnings.iter().map(|it| it.message.clone()).collect();
        (loaded.plan.rollout.unwrap().wave, told.join("\n"))
    };
    let (wave, told) = warned(alone);
    assert!(
        wave.is_none() && told.contains("rollout.wave: it does nothing without [fleet]"),
        "{told}"
    );
    let (_, told) = warned(&fleet("pause = \"1m\""));
    assert!(told.contains("rollout.pause: it does nothing without wave"), "{told}");
}
