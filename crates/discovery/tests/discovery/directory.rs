//! Catalogues that share a directory.

use crate::{
    Told,
    told::{list, query, registration, service, watch},
};
use mainstay_discovery::{Backend, FileCatalogue, Query, Registration, Report, Standing};
use mainstay_tests::{Scratch, until};
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use std::{fs, time::Duration};

fn at(scratch: &Scratch) -> Told {
    // It need not be there.
    let directory = scratch.path().join("catalogue");
    Told::new(Backend::File(FileCatalogue { directory }))
}

fn file(scratch: &Scratch, name: &str) -> Option<Value> {
    let text = fs::read_to_string(scratch.path().join("catalogue").join(name)).ok()?;
    Some(serde_json::from_str(&text).expect("a file is always whole"))
}

#[test]
fn what_one_node_announces_another_sees() {
    let scratch = Scratch::new();
    let (mut one, mut other) = (at(&scratch), at(&scratch));
    other.watch("peers", query("web"));
    assert_eq!(other.ids("peers"), [""; 0]);
    one.announce(registration("web-1", "web"), Standing::Passing, "");
    one.announced("web-1");
    let list = other.instances("peers");
    assert_eq!((list[0].id.as_str(), list[0].name.as_str()), ("web-1", "web"));
    assert_eq!((list[0].address.as_str(), list[0].port), ("10.1.2.3", 8080));
    assert_eq!(list[0].tags, ["blue"]);
    assert!(!list[0].node.is_empty());
    other.announce(registration("web-2", "web"), Standing::Passing, "");
    other.until_ids("peers", &["web-1", "web-2"]);
    one.announce(registration("web-1", "web"), Standing::Critical, "ill");
    other.until_ids("peers", &["web-2"]);
    let entry = file(&scratch, "web.json").expect("a file")[0].clone();
    assert_eq!(
        (entry["standing"].as_str(), entry["note"].as_str()),
        (Some("critical"), Some("ill"))
    );
    one.announce(registration("web-1", "web"), Standing::Passing, "");
    other.until_ids("peers", &["web-1", "web-2"]);
    one.withdraw("web-1");
    assert!(one.withdrawn("web-1"));
    other.until_ids("peers", &["web-2"]);
    // Whoever announced it.
    one.withdraw("web-2");
    assert!(one.withdrawn("web-2"));
    assert_eq!(file(&scratch, "web.json"), None, "a file without entries is no file");
}

#[test]
fn a_node_that_is_gone_is_missed_when_its_ttl_has_run_out() {
    let scratch = Scratch::new();
    let (mut one, mut other) = (at(&scratch), at(&scratch));
    other.watch("peers", query("web"));
    let short = Registration { ttl: Duration::from_millis(1500), ..registration("web-1", "web") };
    one.announce(short, Standing::Passing, "");
    other.until_ids("peers", &["web-1"]);
    // Nobody touches the file any more.
    drop(one);
    other.until_ids("peers", &[]);
}

#[test]
fn heartbeats_are_no_news() {
    let scratch = Scratch::new();
    let (mut one, mut other) = (at(&scratch), at(&scratch));
    other.watch("peers", Query { debounce: Duration::ZERO, ..query("web") });
    let quick =
        Registration { heartbeat: Duration::from_millis(20), ..registration("web-1", "web") };
    one.announce(quick, Standing::Passing, "");
    other.until_ids("peers", &["web-1"]);
    let expires = || file(&scratch, "web.json")?[0]["expires"].as_u64();
    let before = expires();
    for _ in 0..20 {
        let last = expires();
        until("it beats", || (expires() > last).then_some(()));
    }
    assert!(expires() > before);
    one.announce(registration("end", "web"), Standing::Passing, "");
    other.until_ids("peers", &["end", "web-1"]);
    let lists = other.heard.iter().filter(|report| matches!(report, Report::Instances { .. }));
    assert!(lists.count() <= 3, "{:?}", other.heard);
}

#[test]
fn an_entry_or_a_directory_removed_by_hand_comes_back() {
    let scratch = Scratch::new();
    let (mut one, mut other) = (at(&scratch), at(&scratch));
    other.watch("peers", query("web"));
    one.announce(registration("web-1", "web"), Standing::Passing, "");
    one.announced("web-1");
    fs::remove_file(scratch.path().join("catalogue/web.json")).expect("it is there");
    one.announced("web-1");
    other.until_ids("peers", &["web-1"]);
    fs::rename(scratch.path().join("catalogue"), scratch.path().join("away")).expect("ours");
    one.announced("web-1");
    assert!(file(&scratch, "web.json").is_some());
    one.announce(registration("web-2", "web"), Standing::Passing, "");
    other.until_ids("peers", &["web-1", "web-2"]);
}

#[test]
fn tags_choose_and_a_data_centre_is_refused() {
    let scratch = Scratch::new();
    let mut told = at(&scratch);
    for (id, tag) in [("r1", "master"), ("r2", "replica")] {
        let tagged = Registration { tags: vec![tag.to_owned()], ..registration(id, "redis") };
        told.announce(tagged, Standing::Passing, "");
        told.announced(id);
        told.watch(tag, Query { tag: Some(tag.to_owned()), ..query("redis") });
        assert_eq!(told.ids(tag), [id]);
    }
    told.watch("far", Query { dc: Some("west".to_owned()), ..query("redis") });
    let error = told.trouble(&watch("far"));
    assert!(error.contains("data centre"), "{error}");
}

#[test]
fn a_list_that_changes_all_the_time_ends_right_for_everybody() {
    let scratch = Scratch::new();
    let (mut one, mut other) = (at(&scratch), at(&scratch));
    let mut third = at(&scratch);
    third.watch("peers", query("web"));
    for number in 0..200 {
        let (name, told) = match number % 2 {
            0 => ("a", &mut one),
            _ => ("b", &mut other),
        };
        let new = Registration { port: number, ..registration(name, "web") };
        told.announce(new, Standing::Passing, "");
        told.announced(name);
    }
    third.next("the last state", |report| match report {
        Report::Instances { instances, .. } => {
            list(instances).iter().map(|one| one.port).eq([198, 199]).then_some(())
        }
        _ => None,
    });
}

#[test]
fn two_nodes_with_many_services_lose_none() {
    let scratch = Scratch::new();
    let (mut one, mut other) = (at(&scratch), at(&scratch));
    for number in 0..50 {
        one.announce(registration(&format!("a-{number}"), "web"), Standing::Passing, "");
        other.announce(registration(&format!("b-{number}"), "web"), Standing::Passing, "");
    }
    for (name, mut told) in [("a", one), ("b", other)] {
        for _ in 0..50 {
            told.next("all are announced", |report| {
                matches!(report, Report::Announced { .. }).then_some(())
            });
        }
        // One that was lost would have been announced twice.
        for number in 0..50 {
            let id = format!("{name}-{number}");
            assert!(told.heard.contains(&Report::Announced { id }), "{:?}", told.heard);
        }
    }
    let entries = file(&scratch, "web.json").expect("a file");
    assert_eq!(entries.as_array().expect("a list").len(), 100);
}

#[test]
fn a_lock_that_is_held_too_long_is_trouble_until_it_is_given_back() {
    let scratch = Scratch::new();
    let mut told = at(&scratch);
    told.announce(registration("web-1", "web"), Standing::Passing, "");
    told.announced("web-1");
    let lock = fs::File::open(scratch.path().join("catalogue/.lock")).expect("a lock");
    flock(&lock, FlockOperation::LockExclusive).expect("locked");
    let error = told.trouble(&service("web-1"));
    assert!(error.contains(".lock"), "{error}");
    // Watches need no lock.
    told.watch("peers", query("web"));
    assert_eq!(told.ids("peers"), ["web-1"]);
    drop(lock);
    told.next("it is well", |report| {
        (*report == Report::Well { about: service("web-1") }).then_some(())
    });
}

#[test]
fn a_pipe_in_place_of_a_file_is_trouble_and_keeps_nobody_else_from_being_announced() {
    let scratch = Scratch::new();
    let pipe = scratch.path().join("catalogue/web.json");
    fs::create_dir(scratch.path().join("catalogue")).expect("a directory");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo is there").success());
    let mut told = at(&scratch);
    told.announce(registration("web-1", "web"), Standing::Passing, "");
    assert!(told.trouble(&service("web-1")).contains("not a file"));
    told.announce(registration("db-1", "db"), Standing::Passing, "");
    told.announced("db-1");
}

#[test]
fn a_file_that_makes_no_sense_is_trouble_and_is_not_overwritten() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path().join("catalogue")).expect("ours");
    let path = scratch.path().join("catalogue/web.json");
    fs::write(&path, "by hand").expect("ours");
    let mut told = at(&scratch);
    told.watch("peers", query("web"));
    let error = told.trouble(&watch("peers"));
    assert!(error.contains("web.json") && error.contains("mend or remove"), "{error}");
    told.announce(registration("web-1", "web"), Standing::Passing, "");
    told.trouble(&service("web-1"));
    assert_eq!(fs::read_to_string(&path).expect("still there"), "by hand");
    fs::remove_file(&path).expect("ours");
    told.until_ids("peers", &["web-1"]);
}
