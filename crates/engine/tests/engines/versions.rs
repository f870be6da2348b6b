//! Engines of two versions beside each other: one speaks this version alone, the others the next one
//! as well, which reads nothing like this one and has more in it.

use crate::fixture::{Peer, name};
use mainstay_core::{
    fleet::{EngineEvent, FleetRequest, Message, NodeFacts, RequestId},
    name::Name,
};
use mainstay_engine::Versions;
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

const THIS: Versions = Versions::SPOKEN;
const NEXT: Versions = Versions { oldest: THIS.newest, newest: THIS.newest + 1 };
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Every one says something and is heard by all, and orders go between each two of them.
async fn all_talk(fleet: &mut [Peer], version: u64) {
    for peer in fleet.iter() {
        peer.say(peer.facts(version));
    }
    for peer in fleet.iter_mut() {
        let mut missing: BTreeSet<Name> = NAMES.map(name).into();
        missing.remove(&peer.name);
        while !missing.is_empty() {
            let said = |event: &EngineEvent| match event {
                EngineEvent::Said { node, facts } => {
                    let is_it = facts.version >= version && missing.contains(node);
                    is_it.then(|| (node.clone(), facts.machine.clone()))
                }
                EngineEvent::Members(_) | EngineEvent::Leader { .. } | EngineEvent::Sent { .. } => {
                    None
                }
            };
            let (node, machine) = peer.wait_for(&format!("facts {version}"), said).await;
            assert_eq!(machine, node.as_str());
            missing.remove(&node);
        }
    }
    for from in 0..fleet.len() {
        for to in (0..fleet.len()).filter(|to| *to != from) {
            fleet[from].order(NAMES[to], version);
            let sender = fleet[from].name.clone();
            let ordered = |event: &EngineEvent| match event {
                EngineEvent::Sent { from, message: Message::Order(order) } => {
                    (*from == sender && order.number.counter == version).then_some(())
                }
                EngineEvent::Members(members) => {
                    assert_eq!(members.len(), 3, "somebody was lost");
                    None
                }
                EngineEvent::Leader { .. }
                | EngineEvent::Said { .. }
                | EngineEvent::Sent { .. } => None,
            };
            fleet[to].wait_for(&format!("order {version} of {sender}"), ordered).await;
        }
    }
}

#[tokio::test]
async fn a_fleet_goes_over_to_the_next_version_and_back_node_by_node() {
    let mut fleet: Vec<Peer> = Vec::new();
    for text in NAMES {
        let seeds: Vec<SocketAddr> = fleet.iter().map(|it| it.at).collect();
        fleet.push(Peer::start_speaking(text, ([127, 0, 0, 1], 0).into(), &seeds, THIS).await);
    }
    for peer in &mut fleet {
        peer.sees(&NAMES).await;
    }
    let addresses: Vec<SocketAddr> = fleet.iter().map(|it| it.at).collect();
    let mut version = 1;
    all_talk(&mut fleet, version).await;
    for spoken in [NEXT, THIS] {
        for (at, text) in NAMES.into_iter().enumerate() {
            version += 1;
            // As an upgrade in place: the run is the same, the agent another one.
            drop(fleet.remove(at));
            let new = Peer::start_speaking(text, addresses[at], &addresses, spoken).await;
            fleet.insert(at, new);
            fleet[at].sees(&NAMES).await;
            all_talk(&mut fleet, version).await;
        }
    }
}

#[tokio::test]
async fn what_only_the_next_version_can_ask_goes_through_the_others_as_it_came() {
    let mut fleet = Peer::fleet(&["a", "b"]).await;
    let seeds = [fleet[0].at];
    let next = Peer::start_speaking("c", ([127, 0, 0, 1], 0).into(), &seeds, NEXT).await;
    let asked: FleetRequest =
        serde_json::from_value(json!({ "paint": { "app": "shop" } })).expect("a request");
    let id = RequestId { node: name("c"), run: next.run.clone(), number: 1 };
    let requests: BTreeMap<RequestId, FleetRequest> = [(id, asked)].into();
    next.say(NodeFacts { requests: requests.clone(), ..next.facts(1) });
    for peer in &mut fleet {
        assert_eq!(peer.hears("c", 1).await.requests, requests);
    }
}

#[tokio::test]
async fn whoever_is_two_versions_away_is_kept_out() {
    let mut fleet = Peer::fleet(&["a", "b"]).await;
    let seeds: Vec<SocketAddr> = fleet.iter().map(|it| it.at).collect();
    let far = Versions { oldest: NEXT.newest, newest: NEXT.newest + 1 };
    let far = Peer::start_speaking("c", ([127, 0, 0, 1], 0).into(), &seeds, far).await;
    for peer in &fleet {
        peer.until("it has dropped what it cannot read", |it| it.drops.version > 0).await;
    }
    fleet[0].say(fleet[0].facts(1));
    fleet[1].hears("a", 1).await;
    let members = |peer: &Peer| -> Vec<Name> {
        peer.engine.status().members.iter().map(|it| it.member.node.clone()).collect()
    };
    assert_eq!((members(&fleet[0]).len(), members(&far)), (2, vec![name("c")]));
}
