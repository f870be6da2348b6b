//! The life of a node that only rolls out, as systemd sees it.

use super::Booted;
use mainstay_tests::until;
use std::fs;

const SERVICES: &str = r#"
    [rollout]
    failure_timeout = "3s"
    on_failure = ["sh", "-c", "echo $MAINSTAY_NUMBER $MAINSTAY_PROFILE >>/srv/hook"]
    [services.web]
    unit = "web.service"
    templates = ["conf"]
"#;
const WEB: &str = "[Service]\nExecStart=sleep 1000\n\
    ExecReload=sh -c 'cat /srv/conf >>/srv/web; ! grep -q broken /srv/conf'\n";

#[test]
fn a_failure_ends_the_node_systemd_acts_on_it_and_a_boot_without_the_source_goes_on() {
    let Some(booted) = Booted::boot(SERVICES, &[("web.service", WEB)]) else { return };
    let systemd = &booted.0;
    // Nothing was ever applied: systemd waits, and hears that it has failed.
    assert!(!systemd.run(&["systemctl", "start", "mainstay"]).status.success());
    assert_eq!(systemd.show("mainstay", "ExecMainStatus"), "1");
    until("the alarm is raised", || booted.path("alarm").exists().then_some(()));
    fs::remove_file(booted.path("alarm")).expect("removed");

    fs::write(booted.path("srv/conf"), "before\n").expect("written");
    booted.start_unit("web");
    booted.put("one");
    booted.start_unit("mainstay");
    booted.until_state("running");
    assert_eq!(booted.lines("srv/web"), ["one"]);

    booted.put("broken");
    until("it has failed for good", || {
        (systemd.show("mainstay", "ActiveState") == "failed").then_some(())
    });
    assert_eq!(systemd.show("mainstay", "ExecMainStatus"), "1");
    until("the alarm is raised", || booted.path("alarm").exists().then_some(()));
    assert_eq!(booted.lines("srv/web"), ["one", "broken", "one"]);
    assert_eq!(booted.read("srv/conf"), "one\n");
    let hooks = booted.lines("srv/hook");
    assert!(hooks.iter().all(|line| line.ends_with(" app")), "{hooks:?}");
    let numbers: Vec<u64> =
        hooks.iter().filter_map(|line| line.split(' ').next()?.parse().ok()).collect();
    assert!(numbers.len() >= 2 && numbers.is_sorted_by(|a, b| a < b), "each once: {hooks:?}");

    let file = booted.path("etc/mainstay/mainstay.toml");
    let config = fs::read_to_string(&file).expect("ours").replace("3s", "60s");
    fs::write(file, config).expect("ours");
    // The version that failed is served still, and not tried again by the next start.
    booted.start_unit("mainstay");
    assert_eq!(booted.rollout()["profiles"][0]["in_place"], true);
    systemd.must(&["systemctl", "stop", "mainstay"]);
    assert_eq!(booted.lines("srv/web"), ["one", "broken", "one"]);

    fs::remove_file(booted.path("srv/app.json")).expect("removed");
    booted.start_unit("mainstay");
    let rollout = booted.until_state("pending");
    let profile = &rollout["profiles"][0];
    assert_eq!(profile["in_place"], true, "{profile}");
    assert!(profile["age"].is_u64(), "{profile}");
    assert_eq!(booted.lines("srv/web"), ["one", "broken", "one"], "nobody was told");
    booted.applies("two");
    assert_eq!(booted.lines("srv/web").last().map(String::as_str), Some("two"));
}
