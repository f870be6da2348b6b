//! `mainstay rollout`, as somebody types it who looks first, breaks something, and goes back.

use mainstay_tests::{Node, RolledOut, Scratch, Setup, put_profile, until};
use serde_json::{Value, json};
use std::{fs, path::Path};

const CHECK: &str = r#"check = ["sh", "-c", "! grep -q unfit {{ staged }}"]"#;
const WEB: &str = r#"
    [services.web]
    job = "web"
    templates = ["conf"]
    [jobs.web]
    exec = "sleep 1000"
    reload = { exec = ["sh", "-c", "! grep -q broken out/web.conf"] }
    when = { source = "template.conf", once = "healthy" }
"#;
const SECRET: &str = "xyzzy-plugh-frotz";

/// Without a version.
fn configured() -> RolledOut {
    let template = "name = {{ app.name }}\nkey = {{ secrets.key }}\n";
    RolledOut::new().template("conf", "web.conf", template, CHECK).with(WEB)
}

fn rolled_out() -> Node {
    let configured = configured();
    fs::write(configured.path().join("key"), SECRET).expect("written");
    put(configured.path(), "one");
    let node = configured.launch();
    node.wait_until_ready();
    node.running("web");
    until("the first version is applied", || {
        let (code, _, _) = rollout(&node, &["status"]);
        let status = json(&node, &["status"]);
        let is_applied = status["profiles"][0]["state"] == "applied";
        (code == 0 && is_applied && status["doing"].is_null()).then_some(())
    });
    node
}

/// Another version.
fn put(dir: &Path, name: &str) {
    let secrets = json!({ "key": { "file": dir.join("key") } });
    put_profile(dir, &json!({ "name": name, "secrets": secrets }));
}

fn rollout(node: &Node, args: &[&str]) -> (i32, String, String) {
    let output = node.ask(&[&["rollout"], args].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    for said in [&out, &err] {
        assert!(!said.contains(SECRET), "{args:?}: {said}");
    }
    (output.status.code().expect("it ended by itself"), out, err)
}

fn json(node: &Node, args: &[&str]) -> Value {
    let (_, out, err) = rollout(node, &[args, &["--json"]].concat());
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args:?}: {error}\n{out}{err}"))
}

fn file(node: &Node) -> String {
    fs::read_to_string(node.path().join("out/web.conf")).unwrap_or_default()
}

fn state_of(node: &Node) -> String {
    json(node, &["status"])["state"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn what_is_paused_can_be_looked_at_and_is_applied_when_it_is_resumed() {
    let node = rolled_out();
    let (code, out, _) = rollout(&node, &[]);
    assert_eq!(code, 0);
    assert!(out.starts_with("rollout running\n"), "{out}");
    for part in ["app      applied", "conf      in place", "web      idle   job web"] {
        assert!(out.contains(part), "{part}\n{out}");
    }
    assert_eq!(rollout(&node, &["plan"]).1, "nothing would change\n");

    let (_, out, _) = rollout(&node, &["pause"]);
    assert!(out.contains("mainstay rollout resume"), "{out}");
    put(node.path(), "two");
    let (code, out, _) = rollout(&node, &["plan"]);
    assert_eq!(code, 0);
    assert!(out.contains("  -name = one\n  +name = two\n"), "{out}");
    assert!(out.contains("key = <secrets.key>"), "{out}");
    assert!(out.contains("then told, one after the other: web"), "{out}");
    assert!(out.contains("note: the rollout is paused"), "{out}");
    assert_eq!(json(&node, &["plan"])["services"][0], "web");
    let (code, _, err) = rollout(&node, &["refresh"]);
    assert_eq!(code, 1);
    assert!(err.contains("the rollout is paused: resume it first"), "{err}");
    assert_eq!(json(&node, &["refresh"])["status"], 409);
    assert!(file(&node).contains("one"), "nothing has begun");

    rollout(&node, &["resume"]);
    until("it is applied", || file(&node).contains("name = two").then_some(()));
}

#[test]
fn versions_whose_secrets_alone_differ_are_told_apart_and_chosen_by_name() {
    let node = rolled_out();
    for key in ["rotated-once", "rotated-twice"] {
        fs::write(node.path().join("key"), key).expect("written");
        let (code, _, err) = rollout(&node, &["refresh"]);
        assert_eq!(code, 0, "{err}");
        assert!(file(&node).contains(&format!("key = {key}\n")), "{key}");
    }
    let (_, out, _) = rollout(&node, &["history"]);
    let status = json(&node, &["status"]);
    let profile = &status["profiles"][0];
    let digest = profile["applied"]["digest"].as_str().expect("applied");
    let first = &digest[..12];
    let names = [1, 0].map(|at| profile["history"][at]["version"]["text"].clone());
    assert_eq!(names, [json!(first), json!(format!("{first}+1"))]);
    assert_eq!(profile["applied"]["text"], format!("{first}+2"));
    assert!(out.contains(&format!("{first}+1")), "{out}");

    let (code, _, err) = rollout(&node, &["rollback", "app", &digest[..6]]);
    assert_eq!(code, 1);
    assert!(err.contains("means more than one version") && err.contains("+N"), "{err}");
    let keys = [(first.to_owned(), SECRET), (format!("{}+1", &digest[..6]), "rotated-once")];
    for (version, key) in keys {
        let (code, _, err) = rollout(&node, &["rollback", "app", &version]);
        assert_eq!(code, 0, "{version}: {err}");
        assert!(file(&node).contains(&format!("key = {key}\n")), "{version}");
    }
}

#[test]
fn a_version_is_rolled_back_by_hand_and_stays_refused_until_somebody_asks() {
    let node = rolled_out();
    let (code, _, err) = rollout(&node, &["rollback"]);
    assert_eq!(code, 1);
    assert!(err.contains("profile 'app' has no earlier version"), "{err}");
    put(node.path(), "two");
    until("it is applied", || {
        (file(&node).contains("two") && state_of(&node) == "running").then_some(())
    });
    let (_, out, _) = rollout(&node, &["diff", "app"]);
    assert!(out.contains("  -name = two\n  +name = one\n"), "{out}");
    let (code, out, err) = rollout(&node, &["rollback", "app"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("profile app: version "), "{out}");
    assert!(out.ends_with(" is applied\n"), "{out}");
    assert!(file(&node).contains("name = one"));
    let (_, out, _) = rollout(&node, &["history"]);
    assert!(out.contains("refused") && out.contains("applied"), "{out}");
    let why = node.must(&["why", "profile.app"]);
    assert!(why.contains("mainstay rollout refresh app"), "{why}");

    // By the beginning of its digest.
    let history = json(&node, &["history", "app"]);
    let earlier = history["profiles"][0]["earlier"][0]["version"]["digest"].as_str();
    let earlier = earlier.expect("a version").to_owned();
    let (code, _, err) = rollout(&node, &["rollback", "app", "nothing-like-it"]);
    assert_eq!(code, 1);
    assert!(err.contains("is no version in the history"), "{err}");
    let (code, _, err) = rollout(&node, &["rollback", "app", &earlier[..10]]);
    assert_eq!(code, 0, "{err}");
    assert!(file(&node).contains("name = two"));
}

#[test]
fn what_fails_is_told_to_whoever_asked_and_nothing_stays_of_it() {
    let node = rolled_out();
    rollout(&node, &["pause"]);
    put(node.path(), "broken");
    rollout(&node, &["resume"]);
    until("it has failed", || (state_of(&node) == "pending").then_some(()));
    assert!(file(&node).contains("name = one"));
    let (code, out, _) = rollout(&node, &["status"]);
    assert_eq!(code, 3, "{out}");
    assert!(out.contains("rollout pending\napp: version "), "{out}");
    let (code, _, err) = rollout(&node, &["refresh", "app"]);
    assert_eq!(code, 1);
    assert!(err.contains("of profile 'app' failed: "), "{err}");
    let status = node.must(&["status"]);
    assert!(status.contains("rollout pending"), "{status}");
    for (subject, part) in [
        ("profile.app", "the files of before are in place"),
        ("template.conf", "is in place at"),
        ("service.web", "service 'web' (job web): nothing is to be told"),
    ] {
        let why = node.must(&["why", subject]);
        assert!(why.contains(part), "{subject}: {why}");
        assert!(why.lines().count() <= 5, "{why}");
    }
    put(node.path(), "two");
    let (_, _, err) = rollout(&node, &["refresh"]);
    until("another version ends it", || (state_of(&node) == "running").then_some(()));
    assert!(file(&node).contains("name = two"), "{err}");
}

#[test]
fn what_somebody_has_edited_is_shown_and_overwritten_only_by_force() {
    let node = rolled_out();
    assert_eq!(rollout(&node, &["diff"]).1, "every file is as it was made\n");
    fs::write(node.path().join("out/web.conf"), "name = by hand\n").expect("written");
    let (_, out, _) = rollout(&node, &["diff"]);
    assert!(out.contains("-name = by hand"), "{out}");
    assert!(out.contains("--force"), "{out}");
    put(node.path(), "two");
    until("it has failed", || (state_of(&node) == "pending").then_some(()));
    assert_eq!(file(&node), "name = by hand\n");
    let (code, _, err) = rollout(&node, &["refresh"]);
    assert_eq!(code, 1, "{err}");
    let (code, out, err) = rollout(&node, &["refresh", "--force"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains(" is applied"), "{out}");
    assert!(file(&node).contains("name = two"));
}

#[test]
fn a_job_that_waits_for_what_is_rolled_out_says_why_it_does() {
    let node = configured().launch();
    let why = until("the source was asked in vain", || {
        let why = String::from_utf8_lossy(&node.ask(&["why", "web"]).stdout).into_owned();
        why.contains("profile 'app'").then_some(why)
    });
    assert!(why.contains("template.conf healthy"), "{why}");
    assert!(why.contains("template 'conf' has made no file yet"), "{why}");
}

#[test]
fn what_means_nothing_is_refused_and_so_is_a_node_that_rolls_out_nothing() {
    let node = rolled_out();
    for (args, told) in [
        (&["status", "app"][..], "a profile means nothing"),
        (&["plan", "app", "v1"], "a version means nothing"),
        (&["plan", "--force"], "--force means nothing"),
        (&["plan", "--install", "x"], "--install means nothing"),
    ] {
        let (code, _, err) = rollout(&node, args);
        assert_eq!(code, 2, "{args:?}");
        assert!(err.contains(told), "{err}");
    }
    for args in [&["plan", "apq"][..], &["refresh", "apq"], &["history", "apq"], &["diff", "apq"]] {
        let (code, _, err) = rollout(&node, args);
        assert_eq!(code, 1, "{args:?}");
        assert!(err.contains("there is no profile 'apq': did you mean 'app'?"), "{err}");
    }
    let none = Setup::config("[jobs.a]\nexec = \"sleep 1000\"\n").start();
    let output = none.ask(&["rollout"]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("nothing is rolled out here"), "{told}");
}

#[test]
fn units_are_printed_and_installed_and_need_no_node() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    fs::write(dir.join("a.j2"), "x\n").expect("written");
    let config = "[rollout]\nsignal_files = \"/run/somewhere\"\n\
                  [templates.a]\nsrc = \"a.j2\"\ndst = \"a\"\n\
                  [services.nginx]\nunit = \"nginx.service\"\ntemplates = [\"a\"]\n\
                  [services.web]\nunit = \"web@.service\"\nreload = \"flip-flop\"\ntemplates = [\"a\"]\n";
    fs::write(dir.join("mainstay.toml"), config).expect("written");
    let units = |more: &[&str]| {
        let mut command = std::process::Command::new(mainstay_tests::binary());
        command.args(["rollout", "units", "-c"]).arg(dir.join("mainstay.toml")).args(more);
        let output = command.output().expect("the binary can be started");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{err}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let printed = units(&[]);
    assert!(printed.contains("PathModified=/run/somewhere/%i.reload"), "{printed}");
    assert!(printed.contains("# to enable: mainstay-reload@nginx.service.path"), "{printed}");
    let into = dir.join("units");
    let told = units(&["--install", into.to_str().expect("UTF-8")]);
    assert!(told.contains("systemctl enable --now mainstay-reload@nginx.service.path"), "{told}");
    assert!(told.contains("'mainstay-start@web\\x401.service.path'"), "{told}");
    assert_eq!(fs::read_dir(&into).expect("there").count(), 6);
    let again = units(&["--install", into.to_str().expect("UTF-8")]);
    assert_eq!(again.matches("as it was").count(), 6, "{again}");
}
