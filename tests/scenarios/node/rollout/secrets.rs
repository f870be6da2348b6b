//! Secrets stay where they belong: in the file that is made of them, and in the store.

use super::{rollout, until_rollout};
use mainstay_tests::{Node, RolledOut, put_profile, until};
use serde_json::json;
use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

const SECRET: &str = "correct-horse-battery";

const CHECK: &str = r#"check = ["sh", "-c", "cat {{ staged }}; ! grep -q unfit {{ staged }}"]"#;
const WEB: &str = r#"
    [rollout]
    on_failure = ["sh", "-c", "echo \"$MAINSTAY_NUMBER $MAINSTAY_PROFILE $MAINSTAY_FAILURE\" >> hook; cat out/web.conf; exit 9"]
    [services.web]
    job = "web"
    templates = ["conf"]
    checks = [{ exec = ["sh", "-c", "cat out/web.conf; ! grep -q unwell out/web.conf"] }]
    reload_timeout = "1s"
    [jobs.web]
    exec = ["sleep", "1000"]
    reload = { exec = ["sh", "-c", "cat out/web.conf >&2; ! grep -q unwilling out/web.conf"] }
    when = { source = "template.conf", once = "healthy" }
"#;

fn put(dir: &Path, word: &str) {
    let secrets = json!({ "db": { "file": dir.join("secret") } });
    put_profile(dir, &json!({ "word": word, "secrets": secrets }));
}

fn started() -> Node {
    let template = "{{ app.word }} password={{ secrets.db }}\n";
    let rolled_out = RolledOut::new().template("conf", "web.conf", template, CHECK).with(WEB);
    let dir = rolled_out.path();
    fs::write(dir.join("secret"), format!("{SECRET}\n")).expect("written");
    fs::set_permissions(dir.join("secret"), fs::Permissions::from_mode(0o600)).expect("ours");
    put(dir, "one");
    let node = rolled_out.launch();
    node.wait_until_ready();
    node.running("web");
    until_rollout(&node, "running");
    node
}

/// Files with the secret that others may read, besides those that the test itself has made.
fn leaks(dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).expect("there") {
        let path = entry.expect("there").path();
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        if meta.is_dir() {
            leaks(&path, found);
        } else if meta.is_file()
            && meta.mode() & 0o077 != 0
            && String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).contains(SECRET)
        {
            found.push(path.display().to_string());
        }
    }
}

#[test]
fn no_log_event_status_hook_or_journal_shows_a_secret() {
    let node = started();
    let file = node.path().join("out/web.conf");
    assert_eq!(fs::read_to_string(&file).expect("there"), format!("one password={SECRET}\n"));
    assert_eq!(fs::metadata(&file).expect("there").mode() & 0o777, 0o600);
    for (word, failure) in [
        ("unfit", "the check of template 'conf'"),
        ("unwilling", "service 'web'"),
        ("unwell", "service 'web'"),
    ] {
        put(node.path(), word);
        let told = until("it has failed", || {
            let rollout = rollout(&node);
            let text = rollout["failure"]["failure"].as_str()?.to_owned();
            let is_it = text.contains(word) && rollout["doing"].is_null();
            is_it.then_some(text)
        });
        assert!(told.contains(failure), "{told}");
        assert!(told.contains("<secrets.db>"), "the name in place of the value: {told}");
        let number = rollout(&node)["failure"]["number"].to_string();
        until("the hook has run", || {
            let told = fs::read_to_string(node.path().join("hook")).unwrap_or_default();
            told.lines().any(|it| it.starts_with(&format!("{number} app "))).then_some(())
        });
        assert!(fs::read_to_string(&file).expect("there").starts_with("one "));
    }
    let status = node.must(&["status", "--json"]);
    assert!(!status.contains(SECRET), "{status}");
    let mut events = node.events();
    events.wait("the last failure", |it| {
        it["event"] == "rolledBack" && it.to_string().contains("unwell")
    });
    let events = format!("{:?}", events.seen());
    assert!(!events.contains(SECRET), "{events}");
    let mut found = Vec::new();
    leaks(node.path(), &mut found);
    assert_eq!(found, Vec::<String>::new());
    assert!(!node.stdout().contains(SECRET) && !node.stderr().contains(SECRET));
    let journal = fs::read(node.run_dir().join("journal")).unwrap_or_default();
    assert!(!String::from_utf8_lossy(&journal).contains(SECRET));
}
