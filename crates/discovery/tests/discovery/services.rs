//! Services in a real Consul.

use crate::{
    Told,
    told::{consul, query, registration, service},
};
use mainstay_discovery::{Backend, Catalogue, Registration, Report, Standing};
use mainstay_tests::{Consul, until};
use serde_json::json;
use std::time::Duration;

const WEB: &str = "web-here";

fn standing(consul: &Consul) -> Option<String> {
    Some(consul.standing("web", WEB)?.0)
}

#[test]
fn an_announced_service_is_there_with_all_that_was_said_of_it() {
    let server = Consul::new();
    let mut told = Told::new(consul(&server));
    told.announce(registration(WEB, "web"), Standing::Passing, "all good");
    told.announced(WEB);
    let entry = &server.get("/v1/agent/services")[WEB];
    assert_eq!(entry["Service"], "web");
    assert_eq!(entry["Address"], "10.1.2.3");
    assert_eq!(entry["Port"], 8080);
    assert_eq!(entry["Tags"], json!(["blue"]));
    assert_eq!(entry["Meta"], json!({ "version": "2" }));
    let check = &server.get("/v1/agent/checks")[format!("service:{WEB}")];
    assert_eq!(check["Type"], "ttl");
    assert_eq!(check["Output"], "all good");
    assert!(check["Notes"].as_str().is_some_and(|notes| notes.contains("mainstay")), "{check}");
    until("others see it", || (server.passing("web") == [WEB]).then_some(()));
}

#[test]
fn a_change_of_standing_is_told_with_its_reason() {
    let server = Consul::new();
    let mut told = Told::new(consul(&server));
    // No heartbeat comes in the time of this test: what is seen was told by itself.
    let slow = Registration { heartbeat: Duration::from_secs(3600), ..registration(WEB, "web") };
    told.announce(slow.clone(), Standing::Passing, "");
    told.announced(WEB);
    for (new, word, note) in [
        (Standing::Critical, "critical", "check 'http': status 503\nBad & Ugly?"),
        (Standing::Warning, "warning", "slow"),
        (Standing::Passing, "passing", ""),
    ] {
        told.announce(slow.clone(), new, note);
        until(&format!("it is {word}"), || {
            (server.standing("web", WEB) == Some((word.to_owned(), note.to_owned()))).then_some(())
        });
    }
}

#[test]
fn heartbeats_keep_a_service_passing_beyond_its_ttl_and_it_lapses_without_them() {
    let server = Consul::new();
    let mut told = Told::new(consul(&server));
    let short = Registration { ttl: Duration::from_secs(2), ..registration(WEB, "web") };
    told.announce(short, Standing::Passing, "beating");
    told.announced(WEB);
    let index = |server: &Consul| {
        let check = server.get("/v1/agent/checks")[format!("service:{WEB}")].clone();
        (check["Status"].clone(), check["Output"].clone())
    };
    // Another service whose ttl is longer than ours lapses meanwhile: so much time has passed.
    server.put(
        "/v1/agent/service/register",
        &json!({ "ID": "clock", "Name": "clock", "Check": { "TTL": "4s", "Status": "passing" } }),
    );
    until("the clock has run out", || {
        (server.standing("clock", "clock")?.0 == "critical").then_some(())
    });
    assert_eq!(index(&server), (json!("passing"), json!("beating")));
    drop(told);
    until("nobody keeps it", || (standing(&server)? == "critical").then_some(()));
}

#[test]
fn a_restarted_agent_that_forgot_everything_gets_it_again() {
    let mut server = Consul::new();
    let mut told = Told::new(consul(&server));
    told.announce(registration(WEB, "web"), Standing::Passing, "");
    told.announced(WEB);
    server.kill();
    let error = told.trouble(&service(WEB));
    assert!(error.contains(&server.address()), "{error}");
    server.again();
    told.announced(WEB);
    until("it is passing again", || (server.passing("web") == [WEB]).then_some(()));
    assert!(told.heard.contains(&Report::Well { about: service(WEB) }), "{:?}", told.heard);
}

#[test]
fn an_entry_removed_by_hand_comes_back() {
    let server = Consul::new();
    let mut told = Told::new(consul(&server));
    for (id, standing) in [(WEB, Standing::Passing), ("ill", Standing::Critical)] {
        told.announce(registration(id, "web"), standing, "");
        told.announced(id);
        server.deregister(id);
        told.announced(id);
    }
    until("it is passing again", || (server.passing("web") == [WEB]).then_some(()));
    let troubles = told.heard.iter().filter(|report| matches!(report, Report::Trouble { .. }));
    assert_eq!(troubles.count(), 0, "{:?}", told.heard);
}

#[test]
fn a_critical_service_that_consul_may_forget_is_not_brought_back_by_heartbeats() {
    let server = Consul::new();
    let mut told = Told::new(consul(&server));
    let forgettable = Registration {
        deregister_critical_after: Some(Duration::from_secs(60)),
        ..registration(WEB, "web")
    };
    told.announce(forgettable.clone(), Standing::Critical, "");
    told.announced(WEB);
    server.deregister(WEB);
    // Another one, which beats as often, is removed and comes back a few times meanwhile.
    told.announce(registration("clock", "clock"), Standing::Passing, "");
    for _ in 0..5 {
        told.announced("clock");
        server.deregister("clock");
    }
    let again = told.heard.iter().filter(|report| **report == Report::Announced { id: WEB.into() });
    assert_eq!(again.count(), 1, "{:?}", told.heard);
    told.announce(forgettable, Standing::Passing, "");
    until("it is passing", || (server.passing("web") == [WEB]).then_some(()));
}

#[test]
fn a_service_announced_while_the_server_is_down_arrives_when_it_is_up() {
    let mut server = Consul::new();
    server.kill();
    let mut told = Told::new(consul(&server));
    told.announce(registration(WEB, "web"), Standing::Passing, "");
    let error = told.trouble(&service(WEB));
    assert!(error.starts_with("cannot connect to 127.0.0.1:"), "{error}");
    // Only the latest counts.
    told.announce(registration(WEB, "web"), Standing::Critical, "ill");
    server.again();
    told.announced(WEB);
    assert_eq!(server.get("/v1/agent/checks")["service:web-here"]["Status"], "critical");
}

#[test]
fn a_withdrawn_service_is_gone_and_may_be_announced_again() {
    let server = Consul::new();
    let mut told = Told::new(consul(&server));
    for _ in 0..3 {
        told.announce(registration(WEB, "web"), Standing::Passing, "");
        told.announced(WEB);
        told.withdraw(WEB);
        assert!(told.withdrawn(WEB));
        assert_eq!(server.get("/v1/agent/services"), json!({}));
    }
    // Whoever announced it: an agent that was killed, for one.
    server.register("left-over", "web", 80, &[]);
    told.withdraw("left-over");
    assert!(told.withdrawn("left-over"));
    assert_eq!(server.get("/v1/agent/services"), json!({}));
}

#[test]
fn what_could_not_be_withdrawn_is_removed_when_the_server_is_back() {
    let server = Consul::new();
    let mut told = Told::new(consul(&server));
    told.announce(registration(WEB, "web"), Standing::Passing, "");
    told.announced(WEB);
    server.freeze();
    told.withdraw(WEB);
    assert!(!told.withdrawn(WEB), "a frozen server cannot remove it");
    server.thaw();
    assert!(told.withdrawn(WEB));
    assert_eq!(server.get("/v1/agent/services"), json!({}));
}

#[test]
fn what_could_not_be_withdrawn_stays_when_it_is_announced_again() {
    let server = Consul::new();
    let mut told = Told::new(consul(&server));
    told.announce(registration(WEB, "web"), Standing::Passing, "");
    told.announced(WEB);
    server.freeze();
    told.withdraw(WEB);
    assert!(!told.withdrawn(WEB));
    told.announce(registration(WEB, "web"), Standing::Passing, "back");
    server.thaw();
    until("it is there for good", || {
        (server.standing("web", WEB)? == ("passing".into(), "back".into())).then_some(())
    });
}

#[test]
fn a_frozen_server_costs_a_few_connections_and_gets_the_latest_when_it_thaws() {
    let server = Consul::new();
    let mut told = Told::new(consul(&server));
    let id = |number: usize| format!("web-{number}");
    for number in 0..50 {
        told.announce(registration(&id(number), "web"), Standing::Passing, "");
        told.announced(&id(number));
    }
    server.freeze();
    let error = told.trouble(&service(&id(0)));
    assert!(error.contains("no answer") && error.contains("within"), "{error}");
    for round in 0..200 {
        for number in 0..50 {
            told.announce(registration(&id(number), "web"), Standing::Critical, &round.to_string());
        }
    }
    let open = server.connections();
    // Those given up are closed on our side; what is left is what is under way.
    assert!(open <= 20, "{open} connections to a frozen server");
    server.thaw();
    until("the last word has arrived everywhere", || {
        (0..50)
            .all(|number| {
                server.standing("web", &id(number)) == Some(("critical".into(), "199".into()))
            })
            .then_some(())
    });
}

#[test]
fn five_hundred_services_share_a_few_connections() {
    let server = Consul::new();
    let mut told = Told::new(consul(&server));
    let begun = std::time::Instant::now();
    for number in 0..500 {
        let one = Registration { heartbeat: Duration::from_secs(2), ..registration("", "web") };
        let id = format!("web-{number}");
        told.announce(Registration { id, ..one }, Standing::Passing, "");
    }
    let mut most = 0;
    for number in 0..500 {
        told.next("all are announced", |report| {
            matches!(report, Report::Announced { .. }).then_some(())
        });
        if number % 50 == 0 {
            most = most.max(server.connections());
        }
    }
    eprintln!("500 services announced in {:?}, over {most} connections", begun.elapsed());
    assert!(most <= 16, "{most} connections");
    until("others see them", || (server.passing("web").len() == 500).then_some(()));
}

#[test]
fn a_dropped_catalogue_leaves_nothing_under_way() {
    let server = Consul::new();
    let mut told = Told::new(consul(&server));
    told.announce(registration(WEB, "web"), Standing::Passing, "");
    told.announced(WEB);
    told.watch("peers", query("web"));
    told.until_ids("peers", &[WEB]);
    assert!(server.connections() > 0);
    let elsewhere = Backend::Consul(mainstay_discovery::Consul::default());
    let (other, _) = Catalogue::open(elsewhere);
    drop(std::mem::replace(&mut told.catalogue, other));
    until("its connections are closed", || (server.connections() == 0).then_some(()));
    assert_eq!(server.passing("web"), [WEB], "the entry is left to its ttl");
}
