//! Cut off at every step that is on the disk, the agent killed or the whole node: all old or all
//! new, whoever uses the files told, and no secret to be read.

use super::until_rollout;
use mainstay_tests::{Node, RolledOut, put_profile, until, until_ok};
use serde_json::json;
use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

const WEB: &str = r#"
    [services.web]
    job = "web"
    templates = ["a", "b"]
    reload_timeout = "20s"
    bake_time = "100ms"
    [jobs.web]
    exec = ["sh", "-c", "cat out/a.conf out/b.conf > had; grep -q broken had && exit 3; echo >&3; exec sleep 1000"]
    health = { fd = 3 }
    when = { source = "profile.app", once = "healthy" }
"#;

/// A node that dies at that step, if it gets so far.
fn dies_at(who: &str, point: usize) -> Node {
    let rolled_out = RolledOut::new()
        .template("a", "a.conf", "a {{ app.port }} {{ app.name }}\n", "")
        .template("b", "b.conf", "b {{ app.port }} {{ secrets.key }}\n", "")
        .with(WEB);
    let dir = rolled_out.path();
    fs::write(dir.join("key"), "hush-hush").expect("written");
    fs::set_permissions(dir.join("key"), fs::Permissions::from_mode(0o600)).expect("ours");
    fs::write(dir.join("once"), "").expect("written");
    put(dir, 1, "one");
    let (once, at) = (dir.join("once"), format!("{who}:{point}"));
    rolled_out
        .launch_as(|setup| setup.env("MAINSTAY_CRASH_AT", at).env("MAINSTAY_CRASH_ONCE", once))
}

/// Another version.
fn put(dir: &Path, port: u16, name: &str) {
    let secrets = json!({ "key": { "file": dir.join("key") } });
    put_profile(dir, &json!({ "port": port, "name": name, "secrets": secrets }));
}

fn has_died(node: &Node) -> bool {
    !node.path().join("once").exists()
}

/// Waits for the rollout to get there; a node that has died is started again.
fn gets_to(node: &mut Node, state: &str, version: u16) {
    let is_there = |node: &Node| {
        let asked = node.ask(&["status", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&asked.stdout).unwrap_or_default();
        let rollout = &status["rollout"];
        let retrieved = &rollout["profiles"][0]["retrieved"];
        let applied = &rollout["profiles"][0]["applied"];
        let all = retrieved.is_object() && (state == "pending" || retrieved == applied);
        let a = fs::read_to_string(node.path().join("out/a.conf")).unwrap_or_default();
        let rests = rollout["state"] == state && rollout["doing"].is_null() && all;
        match rests && a.starts_with(&format!("a {version} ")) {
            true => Ok(()),
            false => Err(format!("{rollout:#}\n{a}\n{}", node.stderr())),
        }
    };
    until_ok(&format!("{state} with version {version}"), || {
        if node.try_wait().is_some() {
            node.launch_again();
        }
        is_there(node)
    });
}

/// Both files are of one version, the job has them, and nothing else is left. A node that dies
/// only now, tidying up, is started again.
fn is_whole(node: &mut Node, version: u16, name: &str) {
    let expected = format!("a {version} {name}\nb {version} hush-hush\n");
    let found = |node: &Node| {
        let read = |file: &str| fs::read_to_string(node.path().join(file)).unwrap_or_default();
        let asked = node.ask(&["status", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&asked.stdout).unwrap_or_default();
        let mut left: Vec<String> = fs::read_dir(node.path().join("out"))
            .expect("there")
            .map(|it| it.expect("there").file_name().to_string_lossy().into_owned())
            .collect();
        left.sort();
        let files = read("out/a.conf") + &read("out/b.conf");
        (files, read("had"), status["jobs"][0]["state"] == "RUNNING", left.join(" "))
    };
    until("all of it is in place", || {
        if node.try_wait().is_some() {
            node.launch_again();
        }
        let wanted = (expected.clone(), expected.clone(), true, "a.conf b.conf".to_owned());
        (found(node) == wanted).then_some(())
    });
    no_secret_is_readable(node.path());
}

fn no_secret_is_readable(dir: &Path) {
    for entry in fs::read_dir(dir).expect("there") {
        let path = entry.expect("there").path();
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        if meta.is_dir() {
            no_secret_is_readable(&path);
        } else if meta.is_file() && path.file_name().is_some_and(|it| it != "had") {
            let has = fs::read(&path).unwrap_or_default();
            if has.windows(9).any(|it| it == b"hush-hush") {
                assert_eq!(meta.mode() & 0o077, 0, "{}", path.display());
            }
        }
    }
}

/// A boot, a version that works and one that does not, cut off once.
fn story(who: &str, point: usize) -> bool {
    let mut node = dies_at(who, point);
    gets_to(&mut node, "running", 1);
    put(node.path(), 2, "two");
    gets_to(&mut node, "running", 2);
    // What was not dead before all is whole may die after it.
    let had_died = has_died(&node);
    is_whole(&mut node, 2, "two");
    put(node.path(), 3, "broken");
    // Of a node that starts anew no job runs that could tell it from one that works.
    if who == "rollout-node" && !had_died {
        let whole = |node: &Node| {
            let read = |file: &str| fs::read_to_string(node.path().join(file)).unwrap_or_default();
            [(2, "two"), (3, "broken")].map(|(version, name)| {
                let expected = format!("a {version} {name}\nb {version} hush-hush\n");
                read("out/a.conf") + &read("out/b.conf") == expected
            })
        };
        until("it has failed, or died and gone on", || {
            if node.try_wait().is_some() {
                node.launch_again();
            }
            let (failed, works) = (rests(&node, "pending"), rests(&node, "running"));
            let [old, new] = whole(&node);
            let goes_on = has_died(&node) && (failed || works) && (old || new);
            (goes_on || (failed && old)).then_some(())
        });
        no_secret_is_readable(node.path());
        return has_died(&node);
    }
    gets_to(&mut node, "pending", 2);
    is_whole(&mut node, 2, "two");
    has_died(&node)
}

fn rests(node: &Node, state: &str) -> bool {
    let asked = node.ask(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&asked.stdout).unwrap_or_default();
    let rollout = &status["rollout"];
    rollout["state"] == state && rollout["doing"].is_null()
}

/// Every step, until there is none any more; several at a time. Whether any was reached.
fn at_every_step(who: &'static str, apart: usize) -> usize {
    const MOST: usize = 400;
    let (next, deaths) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let point = 1 + apart * next.fetch_add(1, Ordering::Relaxed);
                    assert!(point < MOST, "it never ends");
                    if !story(who, point) {
                        return;
                    }
                    deaths.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    deaths.into_inner()
}

#[test]
fn an_agent_that_dies_at_any_step_leaves_all_old_or_all_new() {
    let deaths = at_every_step("rollout", 1);
    assert!(deaths > 20, "{deaths}");
}

#[test]
fn a_node_that_dies_at_any_step_goes_on_with_its_next_start() {
    let deaths = at_every_step("rollout-node", 3);
    assert!(deaths > 7, "{deaths}");
}

#[test]
fn a_rollout_that_nobody_kills_passes_the_same_story() {
    let mut node = dies_at("nobody", 1);
    gets_to(&mut node, "running", 1);
    until_rollout(&node, "running");
    is_whole(&mut node, 1, "one");
    assert!(!has_died(&node));
}
