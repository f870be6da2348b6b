//! Chance: inputs that make no sense at all, and long walks through larger worlds that do.

use crate::journaled::{journal, recorded, written};
use mainstay_core::{
    clock::{Mono, Now},
    discovery::Instance,
    event::{EventName, Kind, Source},
    exit::{Asked, Exit},
    job::{Desired, Job, JobSummary, Phase},
    name::Name,
    node::{Command, Held, Input, LostJournal, Node, NodePhase, Outcome, Request, Token, Wait},
    plan::{
        AppPlan, Awaited, Check, Condition, ExitRule, JobPlan, NodePlan, OnFailure, OnLoss, Plan,
        Probe, Reload, Restart, RestartOn, SignalTarget, SourceRef, Trigger, WatchPlan, Watched,
        While,
    },
    record::Memory,
    signal::Signal,
    task::{TaskId, TaskKind, TaskOutcome, TaskOwner},
};
use mainstay_sim::{
    plans,
    world::{self, Agency, Choice, Scope, World},
};
use proptest::{collection::vec, option, prelude::*, sample::Index};
use std::{collections::BTreeMap, iter, sync::Arc, time::Duration};

proptest! {
    #![proptest_config(crate::same_cases(400))]

    #[test]
    fn nonsense_breaks_nothing(plan in rich_plan(), inputs in vec((input(), 0u64..20_000), 0..60)) {
        let mut node = Node::new(plan);
        let mut invariants = Invariants::default();
        let mut mono = Mono(0);
        for (input, ms) in inputs {
            mono = mono.after(Duration::from_millis(ms));
            let before = node.clone();
            let outcome = node.step(Now { mono, wall: 1 }, input.clone());
            invariants.check(&before, &node, &input, &outcome);
        }
    }

    /// What was said before a loss is not known after it, so only numbers are looked at.
    #[test]
    fn a_lost_journal_breaks_nothing(
        plan in rich_plan(),
        inputs in vec(prop_oneof![4 => input(), 1 => loss()], 0..40),
    ) {
        let mut node = Node::new(plan);
        let mut last = 0;
        for (input, at) in inputs.into_iter().zip(1..) {
            let outcome = node.step(Now { mono: Mono(at * 1_000_000_000), wall: 1 }, input);
            for event in &outcome.events {
                assert_eq!(event.seq, last + 1);
                last = event.seq;
            }
        }
    }

    #[test]
    fn what_the_steps_have_recorded_is_the_node(
        plan in journaled_plan(),
        inputs in vec((journaled_input(), 0u64..20_000), 0..40),
    ) {
        let mut node = Node::new(plan.clone());
        let (mut memory, mut mono) = (Memory::default(), Mono(0));
        for input in iter::once((Input::Boot, 0)).chain(inputs) {
            mono = mono.after(Duration::from_millis(input.1));
            let outcome = node.step(Now { mono, wall: 1 }, input.0);
            outcome.records.iter().for_each(|record| memory.take(written(record)));
            outcome.events.iter().for_each(|event| memory.told(event.seq));
            let mut memory = memory.clone();
            let plan = memory.plan_in_force(Some(plan.clone())).expect("a plan");
            prop_assert_eq!(memory.restore(plan).snapshot(), node.snapshot());
        }
    }

    #[test]
    fn the_same_journal_and_input_give_the_same_outcome(
        plan in rich_plan(),
        inputs in vec((input(), 0u64..20_000), 0..40),
    ) {
        let mut node = Node::new(plan.clone());
        let mut mono = Mono(0);
        for (input, ms) in inputs {
            mono = mono.after(Duration::from_millis(ms));
            let mut twin = through_the_journal(&node);
            let now = Now { mono, wall: 1 };
            prop_assert_eq!(node.step(now, input.clone()), twin.step(now, input));
            prop_assert_eq!(node.snapshot(), twin.snapshot());
        }
    }

    #[test]
    fn a_walk_through_a_world_keeps_every_promise(
        plan in gated_plan(),
        steps in vec(any::<Index>(), 0..200),
    ) {
        let world = walk(&plan, LARGE, &steps);
        prop_assert_eq!(world.broken, None);
        let world = calm_down(&plan, world);
        prop_assert_eq!(world.broken, None);
        prop_assert!(world.is_settled(&plan), "{world:#?}");
    }

    /// An agent that dies while it has nothing to do is not missed.
    #[test]
    fn a_takeover_changes_nothing_that_can_be_seen(
        plan in gated_plan(),
        steps in vec(any::<Index>(), 0..200),
    ) {
        let mut world = walk(&plan, Scope { agent_deaths: 0, ..LARGE }, &steps);
        while idle_agent(&world).is_none() && world.exit.is_none() {
            world.choose(&plan, Agency::Correct, Choice::Agent);
        }
        let Some(mind) = idle_agent(&world) else { return Ok(()) };
        let before: Vec<_> = mind.jobs.iter().map(seen).collect();
        world.left.agent_deaths = 2;
        for _ in 0..2 {
            world.choose(&plan, Agency::Correct, Choice::AgentDies);
            world.choose(&plan, Agency::Correct, Choice::AgentStarts);
            while idle_agent(&world).is_none() && world.exit.is_none() {
                world.choose(&plan, Agency::Correct, Choice::Agent);
            }
            let after: Vec<_> = world.journal.jobs.iter().map(seen).collect();
            prop_assert_eq!(&before, &after);
        }
    }

    #[test]
    fn after_a_shutdown_the_exit_comes(plan in gated_plan(), steps in vec(any::<Index>(), 0..200)) {
        let mut world = walk(&plan, LARGE, &steps);
        while idle_agent(&world).is_none() && world.exit.is_none() {
            let revive = world.agent.is_none();
            let choice = if revive { Choice::AgentStarts } else { Choice::Agent };
            world.choose(&plan, Agency::Correct, choice);
        }
        if world.exit.is_none() {
            world.left.shutdowns = 1;
            world.choose(&plan, Agency::Correct, Choice::AsksForShutdown);
            world = calm_down(&plan, world);
        }
        prop_assert_eq!(world.broken, None);
        prop_assert!(world.exit.is_some(), "{world:#?}");
    }
}

const LARGE: Scope =
    Scope { agent_deaths: 6, exits: 20, requests: 10, shutdowns: 2, control_stops: 3 };

fn walk(plan: &Plan, scope: Scope, steps: &[Index]) -> World {
    let mut world = World::new(plan, scope);
    let mut choices = Vec::new();
    for step in steps {
        world.choices(&mut choices);
        if choices.is_empty() {
            break;
        }
        let choice = *step.get(&choices);
        world.choose(plan, Agency::Correct, choice);
        choices.clear();
    }
    world
}

/// Lets everything end that is under way, and nothing new begin.
fn calm_down(plan: &Plan, mut world: World) -> World {
    world.left = Scope { agent_deaths: 0, exits: 0, requests: 0, shutdowns: 0, control_stops: 0 };
    let mut choices = Vec::new();
    for _ in 0..2_000 {
        if world.is_quiet() {
            break;
        }
        world.choices(&mut choices);
        let Some(choice) = choices.first().copied() else { break };
        world.choose(plan, Agency::Correct, choice);
        choices.clear();
    }
    world
}

fn idle_agent(world: &World) -> Option<&world::Saved> {
    let agent = world.agent.as_ref()?;
    (agent.todo.is_empty() && agent.inbox.is_empty()).then_some(&agent.mind)
}

fn seen(job: &Job) -> impl PartialEq + std::fmt::Debug + use<> {
    (
        (job.phase(), job.desired(), job.health(), job.pid()),
        (job.incarnation(), job.restarts(), job.last_exit().cloned(), job.since()),
    )
}

fn through_the_journal(node: &Node) -> Node {
    let mut memory = Memory::default();
    node.snapshot().iter().for_each(|record| memory.take(written(record)));
    memory.restore(node.plan().clone())
}

/// What holds whatever comes in.
#[derive(Default)]
struct Invariants {
    seq: u64,
    accounts: BTreeMap<String, Seen>,
}

#[derive(Default)]
struct Seen {
    last_exit: u64,
    highest: u64,
    stopping: bool,
    /// The incarnation that has said that it is healthy, and nothing else since.
    healthy: Option<u64>,
    /// It has said so, and may come to say the opposite.
    may_fall: bool,
    incarnation: u64,
}

impl Invariants {
    fn check(&mut self, before: &Node, after: &Node, input: &Input, outcome: &Outcome) {
        for event in &outcome.events {
            assert_eq!(event.seq, self.seq + 1);
            self.seq = event.seq;
            if let Source::Job(job) = &event.source {
                self.accounts.entry(job.to_string()).or_default().told(&event.kind);
                let checked = |node: &Node| {
                    node.job_plan(job.as_str()).is_some_and(|plan| !plan.checks.is_empty())
                };
                let fell = event.kind == Kind::Unhealthy;
                assert!(!fell || checked(before) || checked(after), "nobody checks {job}");
            }
        }
        for command in &outcome.commands {
            if let Command::Forget { job } = command {
                self.accounts.remove(job.as_str());
            }
            if let Command::Spawn { job, incarnation, .. } = command {
                let account = self.accounts.entry(job.to_string()).or_default();
                let again = matches!(input, Input::Attached { .. })
                    && before.job(job.as_str()).map(Job::incarnation) == Some(*incarnation);
                assert!(again || *incarnation > account.highest, "numbers are never used again");
                account.highest = *incarnation;
            }
        }
        let (before, now) = (journal(before), journal(after));
        let changed: Vec<&Name> = after
            .jobs()
            .map(|(plan, _)| &plan.name)
            .filter(|name| before.get(*name) != now.get(*name))
            .collect();
        assert_eq!(recorded(outcome), changed, "records are exact");
        assert_eq!(matches!(input, Input::Request(_)), outcome.answer.is_some());
        for (plan, job) in after.jobs() {
            let account = self.accounts.entry(plan.name.to_string()).or_default();
            assert!(job.incarnation() >= account.highest);
            account.highest = job.incarnation();
        }
    }
}

impl Seen {
    fn told(&mut self, kind: &Kind) {
        match kind {
            Kind::ExitSuccess { incarnation, .. } | Kind::ExitFailed { incarnation, .. } => {
                assert!(*incarnation > self.last_exit, "an exit is told once");
                self.last_exit = *incarnation;
            }
            Kind::Stopping => assert!(!std::mem::replace(&mut self.stopping, true)),
            Kind::Stopped { incarnation, exit, .. } => {
                assert!(std::mem::replace(&mut self.stopping, false));
                assert!(*incarnation >= self.last_exit, "the end of a life is its last end");
                self.last_exit = exit.as_ref().map_or(self.last_exit, |_| *incarnation);
                // The next process is judged anew.
                (self.healthy, self.may_fall) = (None, true);
            }
            Kind::Healthy => {
                assert_ne!(self.healthy, Some(self.incarnation), "once, of each process");
                (self.healthy, self.may_fall) = (Some(self.incarnation), true);
            }
            Kind::Unhealthy => {
                assert!(std::mem::replace(&mut self.may_fall, false), "a verdict is said once");
                self.healthy = None;
            }
            Kind::State { incarnation, .. } => {
                assert!(*incarnation >= self.last_exit);
                self.incarnation = *incarnation;
            }
            Kind::Startup
            | Kind::Changed { .. }
            | Kind::TimerExpired
            | Kind::EnterMaintenance
            | Kind::ExitMaintenance
            | Kind::Check { .. }
            | Kind::Enabled
            | Kind::Disabled
            | Kind::Reloaded { .. }
            | Kind::Signal { .. }
            | Kind::AgentRestarted { .. }
            | Kind::Upgraded { .. }
            | Kind::LogGap { .. }
            | Kind::JournalLost { .. }
            | Kind::TaskEnded { .. }
            | Kind::NodeJoined { .. }
            | Kind::NodeLost { .. }
            | Kind::NodeIsolated { .. }
            | Kind::NodeRefused { .. }
            | Kind::MasterChanged { .. }
            | Kind::FleetState { .. }
            | Kind::Placed { .. }
            | Kind::NotPlaced { .. }
            | Kind::Conflict { .. }
            | Kind::WavesStopped { .. }
            | Kind::RolledBack { .. }
            | Kind::UpdateFailed { .. }
            | Kind::RolloutFailed { .. }
            | Kind::StrayKilled { .. } => {}
        }
    }
}

fn plan() -> impl Strategy<Value = Plan> {
    let exit = prop_oneof![
        Just(ExitRule::Main),
        Just(ExitRule::All),
        Just(ExitRule::Any),
        Just(ExitRule::AnyFailure),
        Just(ExitRule::Never),
    ];
    (exit, [job("a"), job("b"), job("c")]).prop_map(|(exit, jobs)| {
        let node = NodePlan { exit, ..plans::node() };
        Plan::new(node, jobs.into())
    })
}

/// Jobs that wait for each other, in any way, however little sense it makes.
fn gated_plan() -> impl Strategy<Value = Plan> {
    (plan(), vec((0..3usize, 0..3usize, event(), 0..5), 0..4)).prop_map(|(mut plan, gates)| {
        for (at, source, event, how) in gates {
            let source = SourceRef::Job(plan.jobs[source].name.clone());
            let job = Arc::make_mut(&mut plan.jobs[at]);
            let condition = Condition { source: source.clone(), event };
            match how {
                0 | 1 => job.when.once.push(condition),
                2 => job.when.trigger = Some(Trigger::Each(vec![condition])),
                3 => job.follows = Some(While { source, on_loss: OnLoss::Stop }),
                _ => job.follows = Some(While { source, on_loss: OnLoss::Restart }),
            }
        }
        plan
    })
}

/// All that a plan can say.
pub(crate) fn rich_plan() -> impl Strategy<Value = Plan> {
    let seconds = || option::of((0u64..8).prop_map(Duration::from_secs));
    let extra = (seconds(), seconds(), seconds(), 0..4usize, any::<bool>());
    (gated_plan(), [extra.clone(), extra.clone(), extra]).prop_map(|(mut plan, extras)| {
        let jobs = plan.jobs.iter_mut().map(Arc::make_mut);
        for (job, (timeout, longest, interval, checks, global)) in jobs.zip(extras) {
            (job.when.timeout, job.timeout) = (timeout, longest);
            if let Some(interval) = interval {
                job.when.trigger = Some(Trigger::Interval(interval));
            }
            if global {
                let event = Awaited::Signal { signal: Signal::HUP };
                job.when.once.push(Condition { source: SourceRef::Node, event });
                job.reload = Some(Reload::Exec(vec!["./reload".to_owned()]));
                job.exec.push("--global".to_owned());
            }
            if checks == 3 {
                job.app = Some(plans::name("shop"));
                job.place.required = global;
            }
            let probes = [Probe::Tcp("[::1]:1".to_owned()), Probe::Notify, Probe::Fd(3)];
            let check = |probe: Probe| Check::new(format!("{probe:?}"), probe);
            job.checks = probes.into_iter().take(checks).map(check).collect();
        }
        let mut shop = AppPlan::new(plans::name("shop"));
        shop.on_failure = OnFailure::RestartApp;
        plan.apps.push(shop);
        plan
    })
}

/// A plan with something of every kind that is journaled.
fn journaled_plan() -> impl Strategy<Value = Plan> {
    rich_plan().prop_map(|mut plan| {
        for (job, sequence) in plan.jobs.iter_mut().zip(1..) {
            Arc::make_mut(job).place.start_sequence = sequence;
        }
        plan.watches.push(WatchPlan {
            name: plans::name("cache"),
            of: Watched::Service { service: "cache".to_owned(), tag: None, dc: None },
            interval: WatchPlan::INTERVAL,
            debounce: WatchPlan::DEBOUNCE,
        });
        plan
    })
}

/// What changes something of every kind.
fn journaled_input() -> impl Strategy<Value = Input> {
    let instance = |id: u16| Instance {
        id: id.to_string(),
        name: "cache".to_owned(),
        address: "::1".to_owned(),
        port: id,
        tags: Vec::new(),
        meta: BTreeMap::new(),
        node: "n".to_owned(),
    };
    prop_oneof![
        8 => input(),
        1 => vec(0u16..3, 0..3).prop_map(move |ids| Input::Instances {
            watch: plans::name("cache"),
            instances: ids.into_iter().map(instance).collect(),
        }),
        1 => option::of("[a-c]").prop_map(|value| Input::Request(Request::Environ {
            changes: BTreeMap::from([("A".to_owned(), value)]),
        })),
    ]
}

/// A plan without some of the jobs, whose conditions on them go with them.
fn subset() -> impl Strategy<Value = Plan> {
    (rich_plan(), [any::<bool>(), any::<bool>(), any::<bool>()]).prop_map(|(mut plan, keep)| {
        let mut keep = keep.into_iter();
        plan.jobs.retain(|_| keep.next().unwrap_or(true));
        plan
    })
}

fn event() -> impl Strategy<Value = Awaited> {
    prop_oneof![
        3 => Just(Awaited::Event(EventName::Healthy)),
        1 => Just(Awaited::Event(EventName::Unhealthy)),
        1 => Just(Awaited::Event(EventName::ExitSuccess)),
        1 => Just(Awaited::Event(EventName::ExitFailed)),
        2 => Just(Awaited::Event(EventName::Stopping)),
        2 => Just(Awaited::Event(EventName::Stopped)),
        1 => Just(Awaited::Event(EventName::TimerExpired)),
    ]
}

fn job(name: &'static str) -> impl Strategy<Value = JobPlan> {
    let on = prop_oneof![Just(RestartOn::Never), Just(RestartOn::Failure), Just(RestartOn::Any)];
    let seconds = || option::of((0u64..4).prop_map(Duration::from_secs));
    let limit = (option::of(0u32..4), seconds());
    (any::<bool>(), on, seconds(), limit, seconds(), any::<bool>()).prop_map(
        move |(main, on, delay, (limit, within), start_seconds, exec)| {
            let mut job = JobPlan::new(plans::name(name), vec![format!("./{name}")]);
            job.main = main;
            job.restart = Restart { delay, limit, within, ..Restart::on(on) };
            job.start_seconds = start_seconds.unwrap_or_default();
            job.stop.exec = exec.then(|| vec!["./drain".to_owned()]);
            job
        },
    )
}

pub(crate) fn input() -> impl Strategy<Value = Input> {
    let name = || prop_oneof!["a", "b", "c", "nope"].prop_map(|name: String| plans::name(&name));
    let incarnation = || 0u64..6;
    let asked = prop_oneof![Just(Asked::None), Just(Asked::Stop), Just(Asked::Kill)];
    let wait = prop_oneof![
        Just(Wait::Started),
        Just(Wait::Backoff),
        Just(Wait::StopTimeout),
        Just(Wait::When),
        Just(Wait::Interval),
        Just(Wait::Longest),
        (0..4usize).prop_map(Wait::Check),
        Just(Wait::Recovery),
    ];
    prop_oneof![
        1 => Just(Input::Boot),
        1 => vec(held(), 0..4).prop_map(|held| Input::Attached {
            held,
            agent_restarts: 1,
            upgraded: Vec::new(),
            lost: None,
        }),
        6 => (name(), incarnation()).prop_map(|(job, incarnation)| Input::Spawned {
            job,
            incarnation,
            pid: world::pid(incarnation),
        }),
        6 => (name(), incarnation(), exit(), asked).prop_map(|(job, incarnation, exit, asked)| {
            Input::Exited { job, incarnation, exit, usage: None, asked }
        }),
        1 => (name(), incarnation(), exit()).prop_map(|(job, incarnation, exit)| {
            let owner = TaskOwner::Job { job, incarnation, kind: TaskKind::StopExec };
            let outcome = TaskOutcome { exit, output: String::new(), truncated: false };
            Input::TaskDone { id: TaskId { number: 0, owner }, outcome }
        }),
        6 => (name(), incarnation(), wait).prop_map(|(job, incarnation, wait)| Input::Timer {
            token: Token::Job { job, incarnation, wait },
        }),
        1 => Just(Input::Timer { token: Token::ShutdownDeadline }),
        1 => Just(Input::Timer { token: Token::ShutdownOverdue }),
        4 => (name(), incarnation(), 0..4usize, any::<bool>()).prop_map(
            |(job, incarnation, check, passed)| {
                let output = "said".to_owned();
                Input::Checked { job, incarnation, check, passed, output }
            }
        ),
        2 => (name(), incarnation(), any::<bool>(), any::<bool>()).prop_map(
            |(job, incarnation, ready, watchdog)| {
                let watchdog_every = (ready && watchdog).then_some(Duration::from_secs(1));
                Input::Notified { job, incarnation, ready, watchdog, watchdog_every }
            }
        ),
        1 => name().prop_map(|job| Input::CronDue { job }),
        1 => any::<bool>().prop_map(|on| Input::Request(Request::Maintenance { on })),
        1 => (0..3).prop_map(|what| {
            let app = plans::name("shop");
            Input::Request(match what {
                0 => Request::StartApp { app },
                1 => Request::StopApp { app },
                _ => Request::RestartApp { app, wave: None },
            })
        }),
        1 => subset().prop_map(|plan| Input::Request(Request::Apply { plan: plan.into(), preview: None })),
        6 => (name(), 0..9).prop_map(|(job, what)| Input::Request(match what {
            0 => Request::Start { jobs: vec![job], args: None, now: false },
            5 => Request::Start { jobs: vec![job], args: Some(vec!["-v".to_owned()]), now: true },
            6 => Request::Disable { job },
            7 => Request::Enable { job },
            8 => Request::Reload { job },
            1 => Request::Stop { job },
            2 => Request::Kill { job },
            3 => Request::Restart { jobs: vec![job], args: None },
            _ => Request::Signal { job, signal: Signal::HUP, to: SignalTarget::Tree },
        })),
        1 => prop_oneof![Just(Signal::HUP), Just(Signal::TERM)]
            .prop_map(|signal| Input::Signalled { signal }),
    ]
}

/// A new agent that has no journal.
fn loss() -> impl Strategy<Value = Input> {
    let phase = prop_oneof![
        3 => Just(NodePhase::Running),
        1 => Just(NodePhase::Maintenance),
        1 => Just(NodePhase::Stopping),
    ];
    (vec(held(), 0..4), phase).prop_map(|(held, phase)| Input::Attached {
        held,
        agent_restarts: 1,
        upgraded: Vec::new(),
        lost: Some(LostJournal { reason: "gone".to_owned(), phase }),
    })
}

fn held() -> impl Strategy<Value = Held> {
    let name = prop_oneof!["a", "b", "c", "nope"].prop_map(|name: String| plans::name(&name));
    let (live, flag) = (option::of(0u64..6), any::<bool>);
    (name, 0u64..6, live, flag(), flag()).prop_map(|(job, highest, live, pending, open)| {
        let live = live.map(|incarnation| (incarnation, world::pid(incarnation)));
        let summary = (highest % 2 == 1).then_some(JobSummary {
            desired: Desired::Rest,
            phase: Phase::Exited,
            exit: Some(Exit::Code { code: 0 }),
        });
        Held { job, highest, live, pending, open, summary }
    })
}

fn exit() -> impl Strategy<Value = Exit> {
    prop_oneof![
        (0..3).prop_map(|code| Exit::Code { code }),
        Just(Exit::Signal { signal: Signal::KILL, oom: true }),
        Just(Exit::Error { error: "exec: no such file".to_owned(), errno: 2 }),
    ]
}
