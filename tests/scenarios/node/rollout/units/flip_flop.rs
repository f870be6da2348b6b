//! Two instances of a unit that take turns.

use super::Booted;
use std::fs;

const SERVICES: &str = r#"
    [services.web]
    unit = "web@.service"
    templates = ["conf"]
    reload = "flip-flop"
    checks = [{ unicorn_health_comparison = { exec = ["cat", "/srv/count.{instance}"] } }]
    reload_timeout = "10s"
    bake_time = "300ms"
"#;
/// Notes when it is there, and when it goes; one version ends while it bakes.
const WEB: &str = "[Service]\nType=oneshot\nRemainAfterExit=yes\n\
    ExecStartPre=sh -c '! grep -q broken /srv/conf'\n\
    ExecStart=sh -c 'echo up %i with $(cat /srv/conf) >>/srv/turns'\n\
    ExecStop=sh -c 'echo down %i >>/srv/turns'\n";

fn count(booted: &Booted, instance: u8, requests: u64, failures: u64) {
    let text = format!(r#"{{"requests": {requests}, "failures": {failures}}}"#);
    fs::write(booted.path(&format!("srv/count.{instance}")), text).expect("written");
}

#[test]
fn the_other_instance_takes_over_and_there_is_never_none() {
    let Some(booted) = Booted::boot(SERVICES, &[("web@.service", WEB)]) else { return };
    let active = || ["web@1", "web@2"].map(|unit| booted.is_active(unit));
    booted.put("one");
    booted.start_unit("mainstay");
    booted.until_state("running");
    assert_eq!(booted.read("srv/conf"), "one\n");
    assert_eq!(active(), [false, false], "what does not run is not started");

    booted.start_unit("web@1");
    for instance in [1, 2] {
        count(&booted, instance, 100, 1);
    }
    booted.applies("two");
    assert_eq!(active(), [false, true]);
    booted.applies("three");
    assert_eq!(active(), [true, false]);
    let turns = ["up 1 with one", "up 2 with two", "down 1", "up 1 with three", "down 2"];
    assert_eq!(booted.lines("srv/turns"), turns, "the old one goes when the new one is there");

    let why = booted.fails("broken", "three");
    assert!(why.contains("service 'web'"), "{why}");
    assert_eq!(booted.lines("srv/turns"), turns, "the old one was not touched");
    assert_eq!(active(), [true, false]);

    // Twenty percent of its requests, against one.
    count(&booted, 2, 100, 20);
    let why = booted.fails("worse", "three");
    assert!(why.contains("fails 20 of 100 requests"), "{why}");
    assert_eq!(booted.lines("srv/turns")[5..], ["up 2 with worse", "down 2"]);
    assert_eq!(active(), [true, false]);

    fs::remove_file(booted.path("srv/count.2")).expect("removed");
    let why = booted.fails("unknown", "three");
    assert!(why.contains("service 'web'"), "what cannot be read is a failure: {why}");
    assert_eq!(active(), [true, false]);

    booted.start_unit("web@2");
    let turns = booted.lines("srv/turns");
    let why = booted.fails("four", "three");
    assert!(why.contains("both of its instances run"), "{why}");
    assert_eq!(booted.lines("srv/turns"), turns, "nothing was started or stopped");
    assert_eq!(active(), [true, true]);
}

/// Ends half a second after it was started.
const ENDS: &str = "[Service]\nType=exec\nExecStart=sh -c 'echo up %i >>/srv/turns; \
    grep -q brief /srv/conf && { sleep 0.5; exit 1; }; exec sleep 1000'\n\
    ExecStopPost=sh -c 'echo gone %i >>/srv/turns'\n";

#[test]
fn an_instance_that_ends_while_it_bakes_has_failed_whichever_it_is() {
    let services = SERVICES.replace("300ms", "3s").replace("checks = ", "# checks = ");
    let Some(booted) = Booted::boot(&services, &[("web@.service", ENDS)]) else { return };
    booted.put("one");
    booted.start_unit("mainstay");
    booted.until_state("running");
    booted.start_unit("web@1");
    for (round, old) in [(1, "one"), (2, "two")] {
        let why = booted.fails(&format!("brief {round}"), old);
        assert!(why.contains("service 'web'"), "{why}");
        let mut active = ["web@1", "web@2"].map(|unit| booted.is_active(unit));
        if round == 2 {
            active.reverse();
        } else {
            // The other one is the old one next.
            booted.applies("two");
        }
        assert_eq!(active, [true, false], "round {round}");
    }
}
