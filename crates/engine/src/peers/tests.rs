//! The exchange of one node, told what happens around it.

use super::{
    exchange::{Exchange, PeerAction},
    frame::{FactsText, PeerKey, Said},
};
use crate::mesh::{Digest, Reached, Versions};
use mainstay_core::{
    clock::Mono,
    fleet::{
        Departed, EngineCommand, EngineEvent, FailureQueue, FleetMember, FleetStage, JobOrder,
        MemberId, Message, NodeFacts, Number, OrderKind, Role, RunId, Shared, Term, Wishes,
    },
    name::Name,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn peer(text: &str) -> PeerKey {
    let (node, run) = text.split_once('.').expect("NODE.RUN");
    PeerKey { node: name(node), run: RunId::new(run) }
}

fn at(milliseconds: u64) -> Mono {
    Mono(0).after(Duration::from_millis(milliseconds))
}

fn reached(all: &[&str]) -> Vec<Reached> {
    let member = |(id, text): (usize, &&str)| {
        let PeerKey { node, run } = peer(text);
        let member = FleetMember { node, run, id: MemberId(id as u64) };
        Reached { member, at: ([127, 0, 0, 1], 7071).into() }
    };
    all.iter().enumerate().map(member).collect()
}

fn facts(run: &str, version: u64, term: Option<(u64, &str)>) -> Arc<NodeFacts> {
    let term = term.map(|(number, master)| Term { number, master: name(master) });
    Arc::new(NodeFacts {
        run: RunId::new(run),
        version,
        now: Mono(1),
        machine: String::new(),
        in_sync: true,
        peers: Shared::default(),
        accepts: Shared::default(),
        highest_term: term.clone(),
        term,
        stage: FleetStage::Initialization,
        isolates: Shared::default(),
        drained: false,
        hands_over: false,
        ending: false,
        catalogue: Arc::default(),
        jobs: Shared::default(),
        wishes: Wishes::default(),
        failures: FailureQueue::default(),
        requests: BTreeMap::new(),
        departed: Departed::default(),
        waves: Shared::default(),
        work: None,
    })
}

fn said(run: &str, version: u64, term: Option<(u64, &str)>) -> Said {
    Said::Facts { facts: facts(run, version, term), hash: version }
}

fn order() -> Message {
    let number = Number { term: Term { number: 1, master: name("b") }, counter: 1 };
    Message::Order(JobOrder { number, job: name("web"), what: OrderKind::Stop })
}

fn exchange(me: &str) -> Exchange {
    Exchange::new(peer(me), Duration::from_secs(1), BTreeSet::new(), None)
}

/// What it does, in short.
fn actions(exchange: &mut Exchange) -> Vec<String> {
    let told = |event: EngineEvent| match event {
        EngineEvent::Members(members) => format!("{} members", members.len()),
        EngineEvent::Leader { term, .. } => format!("leader {term}"),
        EngineEvent::Said { node, facts } => format!("{node} says {}", facts.version),
        EngineEvent::Sent { from, .. } => format!("{from} sends"),
    };
    let short = |action| match action {
        PeerAction::Call { peer, .. } => format!("call {}.{}", peer.node, peer.run),
        PeerAction::HangUp(connection) => format!("hang up {connection}"),
        PeerAction::PushFacts(connection) => format!("push to {connection}"),
        PeerAction::Pull(connection) => format!("pull from {connection}"),
        PeerAction::Send(connection, _) => format!("send to {connection}"),
        PeerAction::Tell(event) => told(event),
    };
    exchange.take_actions().into_iter().map(short).collect()
}

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn the_smaller_name_calls_and_calls_again() {
    let mut b = exchange("b.1");
    b.members_are(at(0), reached(&["b.1", "a.1", "c.1"]));
    assert_eq!(actions(&mut b), ["3 members", "call c.1"]);
    let mut times = Vec::new();
    for now in 0..3000 {
        b.call_failed(at(now), &peer("c.1"));
        b.pass(at(now));
        if actions(&mut b).contains(&"call c.1".to_owned()) {
            times.push(now);
        }
    }
    assert_eq!(times, [50, 151, 352, 753, 1554, 2555]);
}

#[test]
fn facts_are_pushed_to_whoever_is_there_and_comes_and_pulled_when_they_differ() {
    let mut b = exchange("b.1");
    b.members_are(at(0), reached(&["b.1", "a.1"]));
    b.connected(1, peer("a.1"));
    assert_eq!(actions(&mut b), ["2 members"], "there is nothing to say");
    b.say(FactsText::new(&facts("1", 1, None), Versions::SPOKEN));
    assert_eq!(actions(&mut b), ["push to 1"]);
    b.connected(2, peer("a.1"));
    assert_eq!(actions(&mut b), ["hang up 1", "push to 2"], "one connection for a pair");
    b.received(2, said("1", 5, None));
    assert_eq!(actions(&mut b), ["a says 5"]);
    let digest = |version, hash| Digest { node: name("a"), run: RunId::new("1"), version, hash };
    for (now, version, hash, expected) in [
        (0, 5, 5, none()),
        (0, 4, 9, none()),
        (0, 6, 6, vec!["pull from 2".to_owned()]),
        (1, 6, 6, none()),
        (2001, 6, 6, vec!["pull from 2".to_owned()]),
    ] {
        b.digest(at(now), &digest(version, hash));
        assert_eq!(actions(&mut b), expected, "{version}");
    }
    b.received(2, Said::Pull);
    assert_eq!(actions(&mut b), ["push to 2"]);
}

#[test]
fn what_somebody_says_before_it_is_a_member_waits_for_that() {
    let mut b = exchange("b.1");
    b.members_are(at(0), reached(&["b.1"]));
    b.connected(1, peer("a.1"));
    b.received(1, said("1", 1, None));
    b.received(1, Said::Sent(order()));
    assert_eq!(actions(&mut b), ["1 members"]);
    b.members_are(at(1), reached(&["b.1", "a.1"]));
    assert_eq!(actions(&mut b), ["2 members", "a says 1"]);
    // Facts of another run than that of the connection are nothing that this node says.
    b.received(1, said("9", 2, None));
    assert_eq!(actions(&mut b), ["hang up 1"]);
}

#[test]
fn it_is_said_again_only_for_those_that_take_no_part() {
    let mut b = exchange("b.1");
    b.members_are(at(0), reached(&["b.1", "a.1", "c.1"]));
    b.connected(1, peer("a.1"));
    b.connected(2, peer("c.1"));
    b.received(1, said("1", 1, None));
    b.received(2, said("1", 1, None));
    let among = [name("a"), name("b")].into();
    b.command(EngineCommand::Campaign { role: Role::Master, among });
    actions(&mut b);
    b.pass(at(1000));
    assert_eq!(actions(&mut b), ["c says 1"]);
    b.pass(at(1500));
    assert_eq!(actions(&mut b), none());
}

#[test]
fn an_isolated_node_has_no_claim_not_even_by_the_height_of_its_term() {
    let mut a = exchange("a.1");
    a.members_are(at(0), reached(&["a.1", "b.1"]));
    a.connected(1, peer("b.1"));
    a.received(1, said("1", 1, Some((77, "b"))));
    actions(&mut a);
    a.command(EngineCommand::Campaign { role: Role::Master, among: [name("a")].into() });
    assert_eq!(actions(&mut a), ["leader 1.a"]);
    // As soon as it takes part its claim counts; of two masters the smaller name stays.
    let among = [name("a"), name("b")].into();
    a.command(EngineCommand::Campaign { role: Role::Master, among });
    assert_eq!(actions(&mut a), ["leader 78.a"]);
}

#[test]
fn of_one_name_only_the_earliest_run_is_obeyed() {
    let mut b = exchange("b.1");
    b.members_are(at(0), reached(&["b.1", "a.1", "a.2"]));
    b.connected(1, peer("a.1"));
    b.connected(2, peer("a.2"));
    actions(&mut b);
    b.received(2, Said::Sent(order()));
    assert_eq!(actions(&mut b), none());
    b.received(1, Said::Sent(order()));
    assert_eq!(actions(&mut b), ["a sends"]);
    let to = name("a");
    b.command(EngineCommand::Send { to, message: order() });
    assert_eq!(actions(&mut b), ["send to 1"]);
    b.members_are(at(1), reached(&["b.1", "a.2"]));
    assert_eq!(actions(&mut b), ["2 members", "hang up 1"]);
    b.received(2, Said::Sent(order()));
    assert_eq!(actions(&mut b), ["a sends"]);
}

#[test]
fn an_order_to_itself_comes_back_and_one_to_nobody_is_lost() {
    let mut b = exchange("b.1");
    b.members_are(at(0), reached(&["b.1"]));
    actions(&mut b);
    b.command(EngineCommand::Send { to: name("b"), message: order() });
    b.command(EngineCommand::Send { to: name("z"), message: order() });
    assert_eq!(actions(&mut b), ["b sends"]);
}
