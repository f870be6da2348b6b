//! Which node a command means, and which there are.

use super::{User, text};
use mainstay_tests::{signal, until};
use rustix::process::Signal;
use std::fs;

const SHOP: &str = "[node]\nname = \"shop\"\nexit = \"never\"\n[jobs.web]\nexec = \"sleep 1000\"\n";

#[test]
fn two_checkouts_of_one_name_do_not_meet() {
    let user = User::new();
    let (one, other) = (user.project("one/shop", SHOP), user.project("other/shop", SHOP));
    let elsewhere = user.own_dir("elsewhere");
    let (first, _) = user.start(&one, &[]);
    let (second, told) = user.start(&other, &[]);
    // From its directory, or with its configuration, by whichever path.
    let config = |path: &str| user.path(path).display().to_string();
    for (cwd, args, keeper) in [
        (&one, vec![], first),
        (&other, vec![], second),
        (&elsewhere, vec!["-c".to_owned(), config("one/shop/mainstay.toml")], first),
        (&elsewhere, vec!["-c".to_owned(), config("other/shop")], second),
        (&one, vec!["-c".to_owned(), "../../other/shop/mainstay.toml".to_owned()], second),
    ] {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let status = user.json(cwd, &[&["status", "--json"], args.as_slice()].concat());
        assert_eq!(status["keeper"]["pid"], keeper, "{} {args:?}: {status}", cwd.display());
    }
    let lost = user.ask(&elsewhere, &["status"]);
    assert_eq!(lost.status.code(), Some(4), "{lost:?}");
    assert!(text(&lost.stderr).contains("`mainstay ps` lists"), "{lost:?}");

    // What is said to one is not said to the other, now and in its next run.
    user.must(&one, &["disable", "web"]);
    user.must(&other, &["shutdown"]);
    user.wait(second);
    assert_eq!(user.job(&one, "web").expect("it runs on")["desired"], "disabled");
    assert!(!fs::read_to_string(&told).expect("written").contains("disabled"));
    let (_, told) = user.start(&other, &[]);
    until("web runs", || user.job(&other, "web").filter(|job| job["state"] == "RUNNING"));
    assert!(!fs::read_to_string(&told).expect("written").contains("disabled"));
    user.must(&one, &["shutdown"]);
    user.wait(first);
    let (_, told) = user.start(&one, &[]);
    let wanted = "disabled since an earlier run: web; `mainstay enable web` undoes that";
    let told = until("it is told", || {
        Some(fs::read_to_string(&told).expect("written")).filter(|told| told.contains(wanted))
    });
    assert_eq!(told.matches(wanted).count(), 1, "{told}");
}

#[test]
fn a_node_without_a_configuration_is_found_from_where_it_was_started() {
    let user = User::new();
    let (here, there) = (user.own_dir("here"), user.own_dir("there"));
    let (keeper, _) = user.start(&here, &["--", "sleep", "1000"]);
    assert_eq!(user.json(&here, &["status", "--json"])["keeper"]["pid"], keeper);
    // Who is in no project means the only node that there is.
    assert_eq!(user.json(&there, &["status", "--json"])["keeper"]["pid"], keeper);
    fs::write(there.join("mainstay.toml"), SHOP).expect("a scratch directory");
    assert_eq!(user.ask(&there, &["status"]).status.code(), Some(4));
    fs::write(there.join("Procfile"), "web: sleep 1000\n").expect("a scratch directory");
    let procfile = there.join("Procfile").display().to_string();
    let (keeper, _) = user.start(&here, &["--from", "procfile", &procfile]);
    assert_eq!(user.json(&there, &["status", "--json"])["keeper"]["pid"], keeper);
}

#[test]
fn ps_lists_all_nodes_of_a_user_and_tells_the_dead_apart() {
    let user = User::new();
    let names = ["running", "killed", "ended", "apart"];
    let projects = names.map(|name| user.project(name, SHOP));
    let elsewhere = user.own_dir("elsewhere");
    let run_dir = user.own_dir("named-run").display().to_string();
    let keepers = projects.each_ref().map(|project| match project.ends_with("apart") {
        true => user.start(project, &["--run-dir", &run_dir]).0,
        false => user.start(project, &[]).0,
    });
    signal(keepers[1], Signal::KILL);
    user.wait(keepers[1]);
    user.must(&projects[2], &["shutdown"]);
    user.wait(keepers[2]);

    let nodes = |args: &[&str]| {
        let all = user.json(&elsewhere, &[&["ps", "--json"], args].concat());
        let all = all.as_array().expect("a list").clone();
        names.map(|name| {
            let its = user.path(name).display().to_string();
            all.iter().find(|node| node["project"] == *its).cloned()
        })
    };
    let state = |node: &Option<serde_json::Value>| {
        node.as_ref().map(|node| node["state"].as_str().unwrap_or_default().to_owned())
    };
    let word = |word: &str| Some(word.to_owned());
    let found = until("the dead is known", || {
        let found = nodes(&[]);
        (state(&found[1]) == word("dead")).then_some(found)
    });
    let states = found.each_ref().map(state);
    assert_eq!(states, [word("running"), word("dead"), None, word("running")]);
    assert_eq!(nodes(&["--all"]).each_ref().map(state)[2], word("ended"));
    let node = found[0].as_ref().expect("it runs");
    assert_eq!((&node["node"], &node["pid"]), (&"shop".into(), &keepers[0].into()));
    assert_eq!(node["jobs"], 1);
    assert_eq!(found[3].as_ref().expect("it runs")["run_dir"], *run_dir);
    let page = user.must(&elsewhere, &["ps"]);
    let line = |name: &str| {
        let path = user.path(name).display().to_string();
        page.lines().find(|line| line.contains(&path)).unwrap_or_default().to_owned()
    };
    assert!(line("running").contains("shop  running"), "{page}");
    assert!(line("killed").contains("dead"), "{page}");

    // What it left is cleared by a sweep of its project, as by its next run.
    user.must(&projects[1], &["sweep"]);
    assert_eq!(state(&nodes(&[])[1]), None);
}
