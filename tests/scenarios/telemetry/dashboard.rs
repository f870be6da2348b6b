//! The dashboard that we give away shows only what there is.

use super::{metrics, start};
use mainstay_tests::Scratch;
use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, path::Path};

/// It begins with a key of `[node]`.
const CONFIG: &str = r#"
name = "n1"
[fleet]
nodes = ["n1=ADDRESS"]
key_file = "KEY"
[telemetry]
listen = "127.0.0.1:PORT"
[containerpilot]
[jobs.web]
exec = "sleep 1000"
health = { exec = "true", interval = "50ms" }
[jobs.db]
exec = "sleep 1000"
app = "shop"
[apps.shop]
[discovery]
engine = "file"
dir = "DIR/catalogue"
[watches.cache]
service = "redis"
[profiles.app]
source = "file"
path = "app.json"
[templates.conf]
src = "mainstay.toml"
dst = "rendered"
profiles = ["app"]
[services.web]
job = "web"
templates = ["conf"]
"#;

fn metric_names(text: &str) -> BTreeSet<&str> {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = |word: &&str| word.starts_with("mainstay_") || word.starts_with("process_");
    // The beginnings themselves are no names.
    parts.filter(ours).filter(|word| !word.ends_with('_')).collect()
}

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_dashboard_and_the_book_name_only_series_that_exist_and_the_book_names_all() {
    let scratch = Scratch::new();
    let key = scratch.path().join("fleet.key");
    fs::write(&key, "5e".repeat(32)).expect("a scratch directory can be written");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("our own file");
    // Other tests have fleets as well.
    let pid = std::process::id();
    let address = format!("127.{}.{}.251:7071", 1 + (pid >> 8 & 0x7f), pid & 0xff);
    let config = CONFIG.replace("ADDRESS", &address).replace("KEY", &key.display().to_string());
    let (node, port) = start(&config);
    node.until_health("web", "healthy");
    let took = "mainstay_check_duration_seconds_count{job_name=\"web\",check=\"exec\"}";
    mainstay_tests::until("a check has answered", || metrics(port).get(took));
    node.must(&["restart", "web"]);
    let all = metrics(port);
    let mut known: BTreeSet<String> = all.names().into_iter().map(str::to_owned).collect();
    // What a full disk or a silent reader costs is shown only where there is output.
    known.extend(all.families.iter().map(|(name, kind)| match kind.as_str() {
        "counter" => format!("{name}_total"),
        "info" => format!("{name}_info"),
        _ => name.clone(),
    }));
    let dashboard = file("examples/grafana-dashboard.json");
    let json: serde_json::Value = serde_json::from_str(&dashboard).expect("it is JSON");
    assert!(json["panels"].as_array().is_some_and(|panels| panels.len() > 5));
    for word in metric_names(&dashboard) {
        assert!(known.contains(word), "the dashboard shows {word}, which is not there");
    }
    let page = file("docs/telemetry.md");
    for word in metric_names(&page) {
        assert!(known.contains(word), "the book names {word}, which is not there");
    }
    for name in all.families.iter().map(|(name, kind)| match kind.as_str() {
        "counter" => format!("{name}_total"),
        "info" => format!("{name}_info"),
        _ => name.clone(),
    }) {
        assert!(page.contains(&name), "the book does not name {name}");
    }
}
