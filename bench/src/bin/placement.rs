//! How many jobs a fleet can place in a second, by the least load, on a thousand nodes.
//!
//! `cargo run --release -p mainstay-bench --bin placement` prints two figures, by the time of the
//! processor, so that whatever else runs beside it does not count:
//!
//! - **choice**: the strategy alone, each load counted before the next choice;
//! - **start**: a master that starts an app, all of it: wishes, orders, events, what it says.

use mainstay_core::{
    clock::Mono,
    fleet::{
        Catalogue, EngineEvent, Fleet, FleetEvent, FleetInput, FleetMember, FleetRules, FleetStage,
        Identity, JobRules, Kept, Loads, MemberId, NodeFacts, Role, RunId, Seat, Shared, Strategy,
        Term,
    },
    name::Name,
    plan::{AppPlan, Place},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

const NODES: u32 = 1_000;
const JOBS: u32 = 20_000;

fn main() {
    let (count, took) = choices();
    print("choice", count, took);
    let (count, took) = starts();
    print("start", count, took);
}

fn print(what: &str, count: u32, took: Duration) {
    let rate = f64::from(count) / took.as_secs_f64();
    println!("{what:>8}: {rate:>10.0} a second ({count} in {took:.1?}, {NODES} nodes)");
}

/// What this process has used of the processor.
fn used() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn node(number: u32) -> Name {
    name(&format!("node-{number:04}"))
}

/// Until all nodes are full.
fn choices() -> (u32, Duration) {
    let mut loads = Loads::default();
    let seats: Vec<Seat> = (0..NODES)
        .map(|number| loads.add_node(&node(number), &format!("machine-{number}")))
        .collect();
    let begin = used();
    let mut count = 0;
    while loads.place(Strategy::LessLoaded, 1, &seats, None).is_some() {
        count += 1;
    }
    (count, used() - begin)
}

/// One app, all jobs of which start together.
fn starts() -> (u32, Duration) {
    let (app, me, run) = (name("shop"), node(0), RunId::new("run"));
    let place = Place { start_sequence: 1, load: 1, ..Place::default() };
    let rules = JobRules { app: app.clone(), place, definition: 1, instance: None };
    let jobs = (0..JOBS).map(|number| (name(&format!("job-{number:05}")), rules.clone()));
    let catalogue = Arc::new(Catalogue { apps: vec![AppPlan::new(app)], jobs: jobs.collect() });
    let rules = FleetRules { strategy: Strategy::LessLoaded, ..FleetRules::default() };
    let identity = Identity { name: me.clone(), run: run.clone(), machine: "machine-0".to_owned() };
    let mut now = Mono(1);
    let mut fleet = Fleet::new(identity, rules, catalogue.clone(), Kept::default(), now);
    let member = |number: u32| FleetMember {
        node: node(number),
        run: run.clone(),
        id: MemberId(u64::from(number)),
    };
    let members = (0..NODES).map(member).collect();
    fleet.step(now, FleetInput::Engine(EngineEvent::Members(members)));
    for number in 1..NODES {
        let accepts = Shared::new(BTreeMap::from([(me.clone(), run.clone())]));
        let facts = Arc::new(facts(number, &run, accepts, &catalogue));
        fleet.step(now, FleetInput::Engine(EngineEvent::Said { node: node(number), facts }));
    }
    let term = Term { number: 1, master: me };
    fleet.step(now, FleetInput::Engine(EngineEvent::Leader { role: Role::Master, term }));
    // All have had the time to follow it.
    now = now.after(Duration::from_secs(30));
    let begin = used();
    let out = fleet.step(now, FleetInput::Tick);
    let took = used() - begin;
    let placed = out.events.iter().filter(|it| matches!(it, FleetEvent::Placed { .. })).count();
    (u32::try_from(placed).unwrap_or(u32::MAX), took)
}

/// What a node says that has just joined.
fn facts(
    number: u32,
    run: &RunId,
    accepts: Shared<BTreeMap<Name, RunId>>,
    catalogue: &Arc<Catalogue>,
) -> NodeFacts {
    NodeFacts {
        run: run.clone(),
        version: 1,
        now: Mono(1),
        machine: format!("machine-{number}"),
        in_sync: true,
        peers: Shared::new(BTreeSet::new()),
        accepts,
        term: None,
        highest_term: None,
        stage: FleetStage::Initialization,
        isolates: Shared::default(),
        drained: false,
        hands_over: false,
        ending: false,
        catalogue: catalogue.clone(),
        jobs: Shared::default(),
        wishes: mainstay_core::fleet::Wishes::default(),
        failures: mainstay_core::fleet::FailureQueue::default(),
        requests: BTreeMap::new(),
        departed: mainstay_core::fleet::Departed::default(),
        waves: Default::default(),
        work: None,
    }
}
