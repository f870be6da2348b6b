//! What engines do for each other.

use crate::fixture::{KEY, Peer, name};
use mainstay_core::fleet::{EngineCommand, EngineEvent, Message, NodeFacts, Role, Term};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn all_find_each_other_by_one_seed_and_hear_what_each_has_to_say() {
    let mut fleet = Peer::fleet(&["a", "b", "c", "d"]).await;
    for peer in &fleet {
        peer.say(peer.facts(1));
    }
    for peer in &mut fleet {
        let me = peer.name.clone();
        for other in ["a", "b", "c", "d"].into_iter().filter(|it| name(it) != me) {
            assert_eq!(peer.hears(other, 1).await.machine, other);
        }
    }
    // And whatever changes.
    fleet[2].say(NodeFacts { drained: true, ..fleet[2].facts(2) });
    for at in [0, 1, 3] {
        assert!(fleet[at].hears("c", 2).await.drained);
    }
}

#[tokio::test]
async fn one_that_is_gone_is_seen_and_comes_back_as_another_run() {
    let mut fleet = Peer::fleet(&["a", "b", "c"]).await;
    let Peer { at, engine, .. } = fleet.remove(1);
    drop(engine);
    for peer in &mut fleet {
        peer.sees(&["a", "c"]).await;
    }
    let seeds = [fleet[0].at];
    let mut again = Peer::start_at("b", "2", at, &seeds, KEY).await;
    again.sees(&["a", "b", "c"]).await;
    again.say(again.facts(1));
    for peer in &mut fleet {
        peer.sees(&["a", "b", "c"]).await;
        assert_eq!(peer.hears("b", 1).await.run, again.run);
    }
}

#[tokio::test]
async fn whoever_leaves_has_said_so_before_it_is_gone() {
    for _ in 0..5 {
        let mut fleet = Peer::fleet(&["a", "b", "c"]).await;
        for peer in &fleet {
            peer.say(peer.facts(1));
        }
        for peer in &mut fleet[..2] {
            peer.hears("c", 1).await;
        }
        let leaving = fleet.pop().expect("three");
        leaving.say(NodeFacts { ending: true, ..leaving.facts(2) });
        leaving.engine.leave().await;
        for peer in &mut fleet {
            let said = peer
                .wait_for("c ends", |event| match event {
                    EngineEvent::Said { node, facts } if *node == name("c") => Some(facts.ending),
                    EngineEvent::Members(members) if members.len() == 2 => Some(false),
                    _ => None,
                })
                .await;
            assert!(said, "{} saw it go before it had said so", peer.name);
            peer.sees(&["a", "b"]).await;
        }
    }
}

#[tokio::test]
async fn orders_come_in_their_order_after_the_facts_that_explain_them() {
    let mut fleet = Peer::fleet(&["a", "b"]).await;
    fleet[0].say(fleet[0].facts(1));
    fleet[1].hears("a", 1).await;
    for counter in 2..50 {
        fleet[0].say(fleet[0].facts(counter));
        fleet[0].order("b", counter);
    }
    let (mut said, mut ordered) = (1, 1);
    while ordered < 49 {
        let next = fleet[1].wait_for("an order", |event| match event {
            EngineEvent::Said { facts, .. } => Some((Some(facts.version), None)),
            EngineEvent::Sent { message: Message::Order(order), .. } => {
                Some((None, Some(order.number.counter)))
            }
            EngineEvent::Members(_) | EngineEvent::Leader { .. } | EngineEvent::Sent { .. } => None,
        });
        match next.await {
            (Some(version), _) => said = version,
            (None, Some(counter)) => {
                assert_eq!(counter, ordered + 1);
                assert!(said >= counter, "order {counter} came with facts {said}");
                ordered = counter;
            }
            (None, None) => {}
        }
    }
    // One to itself comes at once.
    fleet[0].order("a", 99);
    let own = fleet[0].wait_for("its own order", |event| match event {
        EngineEvent::Sent { from, .. } => Some(from.clone()),
        EngineEvent::Members(_) | EngineEvent::Leader { .. } | EngineEvent::Said { .. } => None,
    });
    assert_eq!(own.await, name("a"));
}

#[tokio::test]
async fn facts_of_a_megabyte_come_whole() {
    let mut fleet = Peer::fleet(&["a", "b", "c"]).await;
    let machine = "x".repeat(1 << 20);
    fleet[0].say(NodeFacts { machine: machine.clone(), ..fleet[0].facts(1) });
    for at in [1, 2] {
        assert_eq!(fleet[at].hears("a", 1).await.machine, machine);
    }
}

#[tokio::test]
async fn of_those_that_take_part_the_first_is_master() {
    let mut fleet = Peer::fleet(&["a", "b", "c"]).await;
    for peer in &fleet {
        peer.say(peer.facts(1));
    }
    let among: BTreeSet<_> = ["b", "c"].into_iter().map(name).collect();
    for peer in &fleet[1..] {
        let among = among.clone();
        peer.engine.command(EngineCommand::Campaign { role: Role::Master, among });
    }
    let leader = |event: &EngineEvent| match event {
        EngineEvent::Leader { role: Role::Master, term } => Some(term.clone()),
        EngineEvent::Members(_) | EngineEvent::Said { .. } | EngineEvent::Sent { .. } => None,
    };
    let term = Term { number: 1, master: name("b") };
    assert_eq!(fleet[1].wait_for("b is master", leader).await, term);
    // The others follow what it claims.
    fleet[1].say(NodeFacts {
        term: Some(term.clone()),
        highest_term: Some(term.clone()),
        ..fleet[1].facts(2)
    });
    assert_eq!(fleet[2].wait_for("b is master", leader).await, term);
}

#[tokio::test]
async fn another_key_is_kept_out_and_counted() {
    let mut fleet = Peer::fleet(&["a", "b"]).await;
    let seeds = [fleet[0].at];
    let mut other = Peer::start_with("c", "1", &seeds, "another key that has 32 characters").await;
    other.sees(&["c"]).await;
    let stranger = tokio::net::TcpStream::connect(fleet[0].at).await.expect("it listens");
    let mut stranger = stranger;
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("sent");
    let mut answer = Vec::new();
    // An alert, or nothing.
    let _ = stranger.read_to_end(&mut answer).await;
    while fleet[0].engine.status().drops.foreign == 0
        || fleet[0].engine.status().refused_connections == 0
    {
        tokio::task::yield_now().await;
    }
    // They go on among themselves.
    fleet[0].say(fleet[0].facts(1));
    fleet[1].hears("a", 1).await;
    assert_eq!(fleet[0].engine.status().members.len(), 2);
}

#[tokio::test]
async fn a_loop_that_is_busy_delays_no_probe() {
    let mut fleet = Peer::fleet(&["a", "b", "c"]).await;
    for peer in &fleet {
        peer.say(peer.facts(1));
    }
    // Everything here runs on one thread, as an agent does: it has no time for anybody.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(4) {
        std::hint::spin_loop();
    }
    for peer in &fleet {
        peer.say(peer.facts(2));
    }
    for peer in &mut fleet {
        let other = if peer.name == name("a") { "b" } else { "a" };
        peer.wait_for("facts, and no loss before them", |event| match event {
            EngineEvent::Members(members) => {
                assert_eq!(members.len(), 3, "somebody was lost");
                None
            }
            EngineEvent::Said { node, facts } => {
                (*node == name(other) && facts.version == 2).then_some(())
            }
            EngineEvent::Leader { .. } | EngineEvent::Sent { .. } => None,
        })
        .await;
    }
}

#[tokio::test]
async fn a_request_is_passed_on_to_the_api_of_another_node() {
    let mut fleet = Peer::fleet(&["a", "b"]).await;
    let mut asked = fleet.pop().expect("two");
    let mut stream = fleet[0].engine.connect(&name("b")).await.expect("b is there");
    stream.write_all(b"ping").await.expect("sent");
    let mut passed = asked.api.next().await.expect("it is there");
    assert_eq!(passed.from, name("a"));
    let mut question = [0; 4];
    passed.stream.read_exact(&mut question).await.expect("asked");
    assert_eq!(&question, b"ping");
    passed.stream.write_all(b"pong").await.expect("answered");
    passed.stream.shutdown().await.expect("the end");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answered");
    assert_eq!(answer, "pong");
    assert!(fleet[0].engine.connect(&name("z")).await.is_err());
}
