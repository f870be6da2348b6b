//! Watches of a real Consul.

use crate::{
    Told,
    told::{consul, list, query, registration, watch},
};
use mainstay_discovery::{Instance, Query, Report, Standing};
use mainstay_tests::Consul;
use serde_json::json;
use std::time::Duration;

#[test]
fn the_first_answer_is_told_even_if_it_is_empty() {
    let server = Consul::new();
    let mut told = Told::new(consul(&server));
    told.watch("cache", query("redis"));
    assert_eq!(told.ids("cache"), [""; 0]);
}

#[test]
fn a_change_is_told_when_it_happens_and_not_when_the_interval_is_over() {
    let server = Consul::new();
    let mut told = Told::new(consul(&server));
    // The interval is a minute, and longer than the patience of this test.
    told.watch("cache", query("redis"));
    assert_eq!(told.ids("cache"), [""; 0]);
    server.register("r1", "redis", 6379, &[]);
    assert_eq!(told.ids("cache"), ["r1"]);
    server.register("r2", "redis", 6380, &[]);
    told.until_ids("cache", &["r1", "r2"]);
    server.register("r2", "redis", 6381, &[]);
    let list = told.instances("cache");
    assert_eq!(list.iter().map(|one| one.port).collect::<Vec<_>>(), [6379, 6381]);
    server.deregister("r1");
    told.until_ids("cache", &["r2"]);
    server.deregister("r2");
    told.until_ids("cache", &[]);
}

#[test]
fn an_instance_carries_what_was_announced_and_counts_only_while_it_passes() {
    let server = Consul::new();
    let mut told = Told::new(consul(&server));
    told.watch("peers", query("web"));
    assert_eq!(told.ids("peers"), [""; 0]);
    told.announce(registration("web-1", "web"), Standing::Passing, "");
    let list = told.instances("peers");
    let Instance { id, name, address, port, tags, meta, node } = list[0].clone();
    assert_eq!((id.as_str(), name.as_str(), node.as_str()), ("web-1", "web", "here"));
    assert_eq!((address.as_str(), port), ("10.1.2.3", 8080));
    assert_eq!(tags, ["blue"]);
    assert_eq!(meta["version"], "2");
    told.announce(registration("web-1", "web"), Standing::Warning, "");
    told.until_ids("peers", &[]);
    told.announce(registration("web-1", "web"), Standing::Passing, "");
    told.until_ids("peers", &["web-1"]);
}

#[test]
fn an_instance_with_a_port_that_is_none_does_not_hide_the_others() {
    let server = Consul::new();
    let mut told = Told::new(consul(&server));
    for (id, port) in [("one", 80), ("high", 70_000), ("low", -1)] {
        server.put("/v1/agent/service/register", &json!({ "ID": id, "Name": "web", "Port": port }));
    }
    told.watch("peers", query("web"));
    told.until_ids("peers", &["one"]);
}

#[test]
fn watches_of_one_service_with_different_tags_do_not_meet() {
    let server = Consul::new();
    server.register("r1", "redis", 1, &["master", "a&b"]);
    server.register("r2", "redis", 2, &["replica"]);
    let mut told = Told::new(consul(&server));
    let tagged = |tag: &str| Query { tag: Some(tag.to_owned()), ..query("redis") };
    for (name, tag, id) in
        [("master", "master", "r1"), ("replica", "replica", "r2"), ("odd", "a&b", "r1")]
    {
        told.watch(name, tagged(tag));
        assert_eq!(told.ids(name), [id]);
    }
    told.watch("none", tagged("nobody"));
    assert_eq!(told.ids("none"), [""; 0]);
    server.deregister("r2");
    told.until_ids("replica", &[]);
    let master =
        |report: &&Report| matches!(report, Report::Instances { watch, .. } if watch == "master");
    assert_eq!(told.heard.iter().filter(master).count(), 1, "{:?}", told.heard);
}

#[test]
fn an_unknown_data_centre_is_trouble_and_not_an_empty_list() {
    let server = Consul::new();
    server.register("r1", "redis", 1, &[]);
    let mut told = Told::new(consul(&server));
    let at = |dc: &str| Query { dc: Some(dc.to_owned()), ..query("redis") };
    told.watch("near", at("dc1"));
    assert_eq!(told.ids("near"), ["r1"]);
    told.watch("far", at("nowhere"));
    let error = told.trouble(&watch("far"));
    assert!(error.contains("No path to datacenter"), "{error}");
    told.watch("near", at("dc1"));
    assert_eq!(told.ids("near"), ["r1"], "a watch that is set again tells its first answer again");
    let far = |report: &Report| matches!(report, Report::Instances { watch, .. } if watch == "far");
    assert!(!told.heard.iter().any(far), "{:?}", told.heard);
}

#[test]
fn a_list_that_changes_all_the_time_is_told_at_the_pace_of_the_debounce_and_ends_right() {
    let server = Consul::new();
    let mut told = Told::new(consul(&server));
    told.watch("cache", Query { debounce: Duration::from_millis(200), ..query("redis") });
    assert_eq!(told.ids("cache"), [""; 0]);
    let begun = std::time::Instant::now();
    for port in 1..=200 {
        server.register("r1", "redis", port, &[]);
    }
    let changing = begun.elapsed();
    told.next("the last state", |report| match report {
        Report::Instances { instances, .. } => (list(instances).first()?.port == 200).then_some(()),
        _ => None,
    });
    let lists = told.heard.iter().filter(|report| matches!(report, Report::Instances { .. }));
    let most = changing.as_millis() / 200 + 4;
    let told = lists.count() as u128;
    assert!(told <= most, "{told} lists in {changing:?}");
}

#[test]
fn a_watch_keeps_what_it_has_while_the_server_is_away_and_goes_on_after() {
    let mut server = Consul::new();
    // So that its count of changes is well ahead of that of the next one.
    for port in 1..=50 {
        server.register("r1", "redis", port, &[]);
    }
    let mut told = Told::new(consul(&server));
    told.watch("cache", query("redis"));
    assert_eq!(told.ids("cache"), ["r1"]);
    server.kill();
    let error = told.trouble(&watch("cache"));
    assert!(error.contains(&server.address()), "{error}");
    server.again();
    server.register("r2", "redis", 2, &[]);
    told.until_ids("cache", &["r2"]);
    assert!(told.heard.contains(&Report::Well { about: watch("cache") }), "{:?}", told.heard);
}

#[test]
fn more_watches_than_may_wait_at_the_server_still_see_changes() {
    let server = Consul::new();
    let mut told = Told::new(consul(&server));
    let name = |number: usize| format!("w{number}");
    let quick = Query { interval: Duration::from_millis(500), ..query("redis") };
    for number in 0..100 {
        told.watch(&name(number), quick.clone());
        told.ids(&name(number));
    }
    let mut most = 0;
    for round in 1..=5 {
        server.register(&round.to_string(), "redis", 1, &[]);
        most = most.max(server.connections());
        for _ in 0..100 {
            told.next("all see it", |report| match report {
                Report::Instances { instances, .. } => (instances.len() == round).then_some(()),
                _ => None,
            });
        }
    }
    eprintln!("100 watches over {most} connections");
    assert!(most <= 80, "{most} connections");
}
