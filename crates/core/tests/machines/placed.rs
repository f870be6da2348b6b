//! Jobs that a fleet places, on one of its nodes; and those that wait to be asked.

use mainstay_core::{
    clock::{Mono, Now},
    exit::{Asked, Exit},
    fleet::{CopyState, JobCopy, JobSaid, Number, OrderKind, Term},
    name::Name,
    node::{Command, Held, Input, LostJournal, Node, NodePhase, Outcome, Refusal, Request},
    plan::{AppPlan, ExitRule, FleetEngine, FleetNode, FleetPlan, JobPlan, NodePlan, Plan},
    record::Memory,
};
use std::time::Duration;

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

pub(crate) fn job(job: &str, app: Option<&str>) -> JobPlan {
    let mut plan = JobPlan::new(name(job), vec![job.to_owned()]);
    plan.app = app.map(name);
    plan
}

pub(crate) fn plan(jobs: Vec<JobPlan>, fleet: bool) -> Plan {
    let node = NodePlan {
        name: "a".to_owned(),
        stop_timeout: Duration::from_secs(8),
        exit: ExitRule::Never,
        log_level: "info".to_owned(),
        machine: None,
    };
    let mut plan = Plan::new(node, jobs);
    plan.apps = vec![AppPlan::new(name("shop"))];
    plan.fleet = fleet.then(|| {
        Box::new(FleetPlan {
            name: name("f"),
            engine: FleetEngine::Mesh,
            listen: ([127, 0, 0, 1], 7071).into(),
            nodes: vec![FleetNode { name: name("a"), address: "a:7071".to_owned() }],
            join: Vec::new(),
            core: Vec::new(),
            tick: FleetPlan::TICK,
            sync_timeout: FleetPlan::SYNC_TIMEOUT,
            order_timeout: FleetPlan::ORDER_TIMEOUT,
            auto_fence: false,
            strategy: Default::default(),
            conciliation: Default::default(),
            key_file: "/key".into(),
        })
    });
    plan
}

pub(crate) fn number(counter: u64) -> Number {
    Number { term: Term { number: 1, master: name("a") }, counter }
}

pub(crate) struct PlacedNode {
    pub(crate) node: Node,
    pub(crate) memory: Memory,
    pub(crate) now: u64,
}

impl PlacedNode {
    pub(crate) fn new(plan: Plan) -> PlacedNode {
        let mut stage = PlacedNode { node: Node::new(plan), memory: Memory::default(), now: 0 };
        stage.step(Input::Boot);
        stage
    }

    pub(crate) fn step(&mut self, input: Input) -> Outcome {
        self.now += 1_000_000;
        let now = Now { mono: Mono(self.now), wall: 0 };
        let outcome = self.node.step(now, input);
        outcome.records.iter().for_each(|record| self.memory.take(record.clone()));
        outcome
    }

    pub(crate) fn order(&mut self, counter: u64, job: &str, what: OrderKind) -> Outcome {
        let said = JobSaid::default();
        self.step(Input::Ordered { job: name(job), order: number(counter), what, said })
    }

    pub(crate) fn copy(&self, job: &str) -> JobCopy {
        self.node.copies().remove(job).expect("a placed job")
    }

    pub(crate) fn runs(&mut self, job: &str) {
        let incarnation = self.copy(job).incarnation;
        self.step(Input::Spawned { job: name(job), incarnation, pid: 7 });
    }
}

pub(crate) fn start(args: &[&str]) -> OrderKind {
    let args = args.iter().map(|it| (*it).to_owned()).collect();
    OrderKind::Start { args, fails_over: false }
}

pub(crate) fn spawned(outcome: &Outcome) -> Vec<&str> {
    let mut all = Vec::new();
    for command in &outcome.commands {
        if let Command::Spawn { job, .. } = command {
            all.push(job.as_str());
        }
    }
    all
}

#[test]
fn a_job_of_an_app_in_a_fleet_starts_by_order_alone() {
    let mut stage = PlacedNode::new(plan(vec![job("web", Some("shop")), job("lone", None)], true));
    assert_eq!(stage.node.copies().len(), 1, "only what has an app is placed");
    assert_eq!(stage.copy("web").state, CopyState::Stopped);
    let outcome = stage.order(1, "web", start(&["-v"]));
    assert_eq!(spawned(&outcome), ["web"]);
    stage.runs("web");
    let copy = stage.copy("web");
    assert_eq!(
        (copy.state, copy.order, copy.by_hand),
        (CopyState::Running, Some(number(1)), false)
    );
    assert_eq!(copy.args, ["-v"]);
    stage.order(2, "web", OrderKind::Stop);
    assert_eq!(stage.copy("web").state, CopyState::Stopping);
    let (incarnation, exit) = (1, Exit::Code { code: 0 });
    let exited =
        Input::Exited { job: name("web"), incarnation, exit, usage: None, asked: Asked::None };
    stage.step(exited);
    let copy = stage.copy("web");
    assert_eq!((copy.state, copy.order), (CopyState::Stopped, Some(number(2))));
}

#[test]
fn the_next_agent_knows_the_last_order_and_who_started_it() {
    let all = plan(vec![job("web", Some("shop"))], true);
    let mut stage = PlacedNode::new(all.clone());
    stage.order(4, "web", OrderKind::Stop);
    let jobs = vec![name("web")];
    stage.step(Input::Request(Request::Start { jobs, args: None, now: false }));
    let again = stage.memory.clone().restore(all);
    let copy = again.copies().remove("web").expect("a placed job");
    assert_eq!((copy.order, copy.by_hand), (Some(number(4)), true));
    assert_eq!(again.copies(), stage.node.copies());
}

/// Whatever they were: nobody is to start it again for those that it may have.
#[test]
fn a_process_outlives_the_journal_that_knew_its_arguments() {
    let all = plan(vec![job("web", Some("shop"))], true);
    let held = |highest, live| Held {
        job: name("web"),
        highest,
        live,
        pending: false,
        open: false,
        summary: None,
    };
    let attached = |held, lost: bool| Input::Attached {
        held: vec![held],
        agent_restarts: 1,
        upgraded: Vec::new(),
        lost: lost.then(|| LostJournal { reason: "torn".to_owned(), phase: NodePhase::Running }),
    };
    let told = |stage: &PlacedNode| {
        let copy = stage.copy("web");
        (copy.state, copy.args.join(" "), copy.args_lost)
    };
    let mut before = PlacedNode::new(all.clone());
    before.order(1, "web", start(&["-v"]));
    before.runs("web");
    assert_eq!(told(&before), (CopyState::Running, "-v".to_owned(), false));
    // The next agent has the journal, and knows.
    let node = before.memory.clone().restore(all.clone());
    let mut stage = PlacedNode { node, memory: before.memory.clone(), now: before.now };
    stage.step(attached(held(1, Some((1, 7))), false));
    assert_eq!(told(&stage), (CopyState::Running, "-v".to_owned(), false));
    // It has it as far as this process; what is lost is of no concern here.
    stage.step(attached(held(1, Some((1, 7))), true));
    assert_eq!(told(&stage), (CopyState::Running, "-v".to_owned(), false));
    // It has none.
    let mut stage = PlacedNode::new(all.clone());
    stage.step(attached(held(1, Some((1, 7))), true));
    assert_eq!(told(&stage), (CopyState::Running, String::new(), true));
    let again = stage.memory.clone().restore(all);
    assert_eq!(again.copies(), stage.node.copies(), "the next agent tells the same");
    // Those of the next process are known.
    stage.order(2, "web", OrderKind::Stop);
    let exit = Exit::Code { code: 0 };
    let (job, asked) = (name("web"), Asked::None);
    stage.step(Input::Exited { job, incarnation: 1, exit, usage: None, asked });
    stage.order(3, "web", start(&["-v"]));
    stage.runs("web");
    assert_eq!(told(&stage), (CopyState::Running, "-v".to_owned(), false));
}

/// So the master knows that nobody but a user has stopped it, and leaves it alone.
#[test]
fn a_copy_tells_that_it_was_stopped_by_hand_until_the_next_order() {
    let mut stage = PlacedNode::new(plan(vec![job("web", Some("shop"))], true));
    stage.order(1, "web", start(&[]));
    stage.runs("web");
    assert!(!stage.copy("web").by_hand);
    stage.step(Input::Request(Request::Stop { job: name("web") }));
    assert!(stage.copy("web").by_hand);
    stage.order(2, "web", OrderKind::Stop);
    assert!(!stage.copy("web").by_hand);
}

#[test]
fn what_a_node_began_with_in_its_fleet_it_keeps_until_it_ends() {
    let alone = plan(vec![job("web", Some("shop"))], false);
    let together = plan(vec![job("web", Some("shop"))], true);
    let mut elsewhere = together.clone();
    if let Some(fleet) = &mut elsewhere.fleet {
        fleet.listen = ([127, 0, 0, 2], 7071).into();
    }
    let mut others = together.clone();
    if let Some(fleet) = &mut others.fleet {
        fleet.auto_fence = true;
    }
    let apply = |from: &Plan, to: &Plan| {
        let mut stage = PlacedNode::new(from.clone());
        let plan = to.clone().into();
        stage.step(Input::Request(Request::Apply { plan, preview: None })).answer
    };
    let refused = |what: &str| Some(Err(Refusal::NewRun(what.to_owned())));
    assert_eq!(apply(&alone, &together), refused("[fleet]"));
    assert_eq!(apply(&together, &alone), refused("[fleet]"));
    assert_eq!(apply(&together, &elsewhere), refused("fleet.listen"));
    assert_eq!(apply(&together, &others), Some(Ok(())));
}

#[test]
fn a_job_without_autostart_starts_when_somebody_asks() {
    let tool = JobPlan { autostart: false, ..job("tool", None) };
    let mut stage = PlacedNode::new(plan(vec![tool.clone()], false));
    let jobs = vec![name("tool")];
    let outcome = stage.step(Input::Request(Request::Start { jobs, args: None, now: false }));
    assert_eq!(spawned(&outcome), ["tool"]);
    // Nor does it when a reload brings it.
    let mut stage = PlacedNode::new(plan(vec![job("lone", None)], false));
    let with_it = plan(vec![job("lone", None), tool], false);
    let request = Request::Apply { plan: with_it.into(), preview: None };
    let outcome = stage.step(Input::Request(request));
    assert_eq!(spawned(&outcome), Vec::<&str>::new());
    assert_eq!(outcome.answer, Some(Ok(())));
}
