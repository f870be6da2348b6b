//! Several rooms in one process, on an engine in memory: what the machines of core decide comes out
//! as orders, and nothing is said before it is on the disk.

use super::{kept_file, *};
use crate::clock;
use mainstay_core::{
    fleet::{
        Conciliation, CopyState, Election, EngineCommand, FleetMember, MemberId, Role, RunId,
        Strategy,
    },
    plan::{AppPlan, ExitRule, FleetEngine, FleetNode, JobPlan, NodePlan, OnFailure},
};
use std::{
    cell::RefCell,
    collections::BTreeSet,
    fs,
    path::PathBuf,
    rc::Rc,
    sync::mpsc as sync_mpsc,
    time::{Duration, Instant},
};
use tokio::{sync::mpsc, time::timeout};

const PATIENCE: Duration = Duration::from_secs(20);

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// One node: its room, its end of the engine, and jobs that do as they are told.
struct TestNode {
    member: FleetMember,
    room: FleetRoom,
    said: sync_mpsc::Receiver<EngineCommand>,
    events: mpsc::Sender<EngineEvent>,
    election: Election,
    among: BTreeSet<Name>,
    jobs: BTreeMap<Name, JobCopy>,
}

struct TestFleet {
    nodes: Vec<TestNode>,
    dir: PathBuf,
}

impl Drop for TestFleet {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn plan(nodes: &[&str], me: &str) -> Plan {
    let node = |it: &&str| FleetNode { name: name(it), address: format!("{it}:7071") };
    let mut web = JobPlan::new(name("web"), vec!["web".to_owned()]);
    web.app = Some(name("shop"));
    let node_plan = NodePlan {
        name: me.to_owned(),
        stop_timeout: Duration::from_secs(8),
        exit: ExitRule::Never,
        log_level: "info".to_owned(),
        machine: None,
    };
    let mut plan = Plan::new(node_plan, vec![web]);
    plan.apps =
        vec![AppPlan { on_failure: OnFailure::RestartProcess, ..AppPlan::new(name("shop")) }];
    plan.fleet = Some(Box::new(FleetPlan {
        name: name("test"),
        engine: FleetEngine::Mesh,
        listen: "127.0.0.1:7071".parse().expect("an address"),
        nodes: nodes.iter().map(node).collect(),
        join: Vec::new(),
        core: Vec::new(),
        tick: FleetPlan::TICK,
        sync_timeout: FleetPlan::SYNC_TIMEOUT,
        order_timeout: FleetPlan::ORDER_TIMEOUT,
        auto_fence: false,
        strategy: Strategy::Config,
        conciliation: Conciliation::User,
        key_file: "/nowhere".into(),
    }));
    plan
}

impl TestFleet {
    fn of(test: &str, names: &[&str]) -> TestFleet {
        let dir =
            std::env::temp_dir().join(format!("mainstay-fleet-{test}-{}", std::process::id()));
        let mut fleet = TestFleet { nodes: Vec::new(), dir };
        for (id, me) in names.iter().enumerate() {
            fleet.add(names, me, id as u64);
        }
        fleet.tell_members();
        fleet
    }

    fn add(&mut self, names: &[&str], me: &str, id: u64) {
        let state_dir = self.dir.join(me);
        fs::create_dir_all(&state_dir).expect("a directory");
        let plan = plan(names, me);
        let fleet_plan = plan.fleet.clone().expect("a fleet");
        let (say, said) = sync_mpsc::channel();
        let (events, incoming) = mpsc::channel(64);
        let run = RunId::new(&format!("run-{id}"));
        let on_disk = state_dir.clone();
        let (fleet_name, my_name) = (fleet_plan.name.clone(), name(me));
        let command = move |command: EngineCommand| {
            if let EngineCommand::Say(facts) = &command {
                let found = kept_file::open(&on_disk, &fleet_name, &my_name);
                assert!(!found.new, "nothing is said before anything is on the disk");
                assert_eq!(found.kept.wishes, facts.wishes);
                assert!(found.kept.highest_term >= facts.highest_term);
            }
            let _ = say.send(command);
        };
        let carrier = Carrier::memory(command, incoming);
        let found = kept_file::open(&state_dir, &fleet_plan.name, &name(me));
        let identity = Identity { name: name(me), run: run.clone(), machine: me.to_owned() };
        let election = Election::new(name(me), found.kept.highest_term.clone());
        let room = FleetRoom::new(
            clock::mono(),
            identity,
            (&plan, &fleet_plan),
            (&state_dir, found),
            carrier,
        );
        let member = FleetMember { node: name(me), run, id: MemberId(id) };
        let (among, jobs) = (BTreeSet::new(), BTreeMap::new());
        self.nodes.push(TestNode { member, room, said, events, election, among, jobs });
    }

    fn tell_members(&self) {
        let members: Vec<FleetMember> = self.nodes.iter().map(|it| it.member.clone()).collect();
        for node in &self.nodes {
            node.send(EngineEvent::Members(members.clone()));
        }
    }

    /// Everything that is said reaches everybody.
    fn route(&mut self) {
        let mut all: Vec<(Name, EngineCommand)> = Vec::new();
        for node in &self.nodes {
            all.extend(node.said.try_iter().map(|said| (node.member.node.clone(), said)));
        }
        for (from, command) in all {
            match command {
                EngineCommand::Campaign { among, .. } => {
                    let node = self.nodes.iter_mut().find(|it| it.member.node == from);
                    node.into_iter().for_each(|it| it.campaign(among.clone()));
                }
                EngineCommand::Say(facts) => {
                    for node in &mut self.nodes {
                        node.election.heard(
                            &from,
                            facts.term.as_ref(),
                            facts.highest_term.as_ref(),
                        );
                        if node.member.node != from {
                            let (node_name, facts) = (from.clone(), facts.clone());
                            node.send(EngineEvent::Said { node: node_name, facts });
                        }
                        node.campaign(node.among.clone());
                    }
                }
                EngineCommand::Send { to, message } => {
                    let node = self.nodes.iter().find(|it| it.member.node == to);
                    let from = from.clone();
                    node.into_iter().for_each(|it| {
                        let (from, message) = (from.clone(), message.clone());
                        it.send(EngineEvent::Sent { from, message });
                    });
                }
            }
        }
    }

    fn homes(&self, job: &str) -> Vec<&str> {
        let runs = |node: &&TestNode| {
            node.jobs.get(job).is_some_and(|copy| copy.state == CopyState::Running)
        };
        self.nodes.iter().filter(runs).map(|it| it.member.node.as_str()).collect()
    }

    async fn until(&mut self, what: &str, is_so: impl Fn(&TestFleet) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < PATIENCE, "{what}");
            self.route();
            for node in &mut self.nodes {
                node.live().await;
            }
        }
    }
}

impl TestNode {
    fn send(&self, event: EngineEvent) {
        self.events.try_send(event).expect("a room that keeps up");
    }

    fn campaign(&mut self, among: BTreeSet<Name>) {
        self.among = among;
        let term = self.election.decide(&self.among, &BTreeSet::new()).cloned();
        if let (Some(term), false) = (term, self.among.is_empty()) {
            self.send(EngineEvent::Leader { role: Role::Master, term });
        }
    }

    async fn live(&mut self) {
        if let Ok(wake) = timeout(Duration::from_millis(1), self.room.next_wake(clock::mono)).await
        {
            self.room.take(clock::mono(), wake);
        }
        while let Some(action) = self.room.next_action() {
            let FleetAction::Order { job, order, what, .. } = action else { continue };
            let copy = self.jobs.entry(job).or_insert_with(JobCopy::none);
            copy.order = Some(order);
            match what {
                OrderKind::Start { .. } => {
                    (copy.state, copy.incarnation) = (CopyState::Running, copy.incarnation + 1);
                }
                OrderKind::Stop => copy.state = CopyState::Stopped,
            }
            self.room.tell_jobs(clock::mono(), self.jobs.clone());
        }
    }
}

#[tokio::test]
async fn an_app_starts_on_one_node_and_moves_when_that_is_lost() {
    let mut fleet = TestFleet::of("moves", &["a", "b", "c"]);
    fleet.until("it starts on the first", |fleet| fleet.homes("web") == ["a"]).await;
    fleet.nodes.remove(0);
    fleet.tell_members();
    fleet.until("it runs on the next", |fleet| fleet.homes("web") == ["b"]).await;
}

#[tokio::test]
async fn whoever_asks_is_answered_by_the_master() {
    let mut fleet = TestFleet::of("asks", &["a", "b"]);
    fleet.until("it has started", |fleet| fleet.homes("web") == ["a"]).await;
    let (caller, answer) = oneshot::channel();
    let request = FleetRequest::StopJob { job: name("web") };
    fleet.nodes[1].room.ask(clock::mono(), request, caller);
    fleet.until("it is stopped", |fleet| fleet.homes("web").is_empty()).await;
    let answered = Rc::new(RefCell::new(answer));
    fleet.until("it is answered", |_| answered.borrow_mut().try_recv().is_ok()).await;
}

#[tokio::test]
async fn a_disk_that_fails_is_not_waited_for() {
    let mut fleet = TestFleet::of("disk", &["a"]);
    // From here on nothing can be written, nor can anybody say that it is there.
    let node = &mut fleet.nodes[0];
    let (say, said) = sync_mpsc::channel();
    let (events, incoming) = mpsc::channel(64);
    node.room.carrier = Carrier::memory(move |command| drop(say.send(command)), incoming);
    (node.said, node.events) = (said, events);
    fleet.tell_members();
    fs::remove_dir_all(&fleet.dir).expect("our own directory");
    fleet.until("it starts all the same", |fleet| fleet.homes("web") == ["a"]).await;
}
