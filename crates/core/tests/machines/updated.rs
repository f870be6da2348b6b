//! Jobs that an update of the rollout tells, and what their end means to the node.

use crate::placed::{PlacedNode, job, name, plan};
use mainstay_core::{
    exit::{Asked, Exit},
    job::Phase,
    node::{Command, Input, NodePhase, Request, Token, Wait},
    plan::{ExitRule, JobPlan, Reload, Restart, RestartOn},
    rollout::RolloutFacts,
    signal::Signal,
    task::{TaskId, TaskKind, TaskOutcome, TaskOwner},
};

/// Jobs of which none is restarted, on a node with this rule.
fn node(exit: ExitRule, jobs: &[&str]) -> PlacedNode {
    let once = |it: &&str| JobPlan { restart: Restart::on(RestartOn::Never), ..job(it, None) };
    let mut plan = plan(jobs.iter().map(once).collect(), false);
    plan.node.exit = exit;
    let mut node = PlacedNode::new(plan);
    for job in jobs {
        node.step(Input::Spawned { job: name(job), incarnation: 1, pid: 7 });
    }
    node
}

fn tells(node: &mut PlacedNode, jobs: &[&str]) {
    let told = jobs.iter().map(|it| name(it)).collect();
    node.step(Input::Rollout(Box::new(RolloutFacts { told, ..RolloutFacts::default() })));
}

fn stop_time_of(job: &str) -> Token {
    Token::Job { job: name(job), incarnation: 1, wait: Wait::StopTimeout }
}

fn ends(node: &mut PlacedNode, job: &str, code: i32) {
    let incarnation = node.node.job(job).expect("a job").incarnation();
    let (job, exit) = (name(job), Exit::Code { code });
    node.step(Input::Exited { job, incarnation, exit, usage: None, asked: Asked::None });
}

#[test]
fn a_node_does_not_end_with_a_job_that_an_update_may_bring_back() {
    for rule in [ExitRule::All, ExitRule::Any, ExitRule::AnyFailure] {
        let mut node = node(rule, &["web"]);
        tells(&mut node, &["web"]);
        ends(&mut node, "web", 3);
        assert_eq!(node.node.phase(), NodePhase::Running, "{rule:?}: it may come back");
        let again = Request::Start { jobs: vec![name("web")], args: None, now: true };
        node.step(Input::Request(again));
        node.step(Input::Spawned { job: name("web"), incarnation: 2, pid: 8 });
        tells(&mut node, &[]);
        assert_eq!(node.node.phase(), NodePhase::Running, "{rule:?}: it has come back");
        ends(&mut node, "web", 3);
        assert_eq!(node.node.phase(), NodePhase::Stopping, "{rule:?}: it has ended by itself");
    }
}

#[test]
fn a_node_decides_anew_when_the_update_is_over() {
    for rule in [ExitRule::All, ExitRule::Any, ExitRule::AnyFailure] {
        let mut node = node(rule, &["web"]);
        tells(&mut node, &["web"]);
        ends(&mut node, "web", 3);
        // The next agent knows of it as well.
        let again = node.memory.clone().restore(node.node.plan().clone());
        assert_eq!(again.phase(), NodePhase::Running);
        tells(&mut node, &[]);
        assert_eq!(node.node.phase(), NodePhase::Stopping, "{rule:?}: nobody brings it back");
    }
}

#[test]
fn a_node_decides_anew_also_when_the_next_update_tells_another_job() {
    let mut node = node(ExitRule::Any, &["web", "other"]);
    tells(&mut node, &["web"]);
    ends(&mut node, "web", 3);
    assert_eq!(node.node.phase(), NodePhase::Running);
    tells(&mut node, &["other"]);
    assert_eq!(node.node.phase(), NodePhase::Stopping, "nobody brings it back");
}

#[test]
fn a_node_ends_with_a_job_that_no_update_tells() {
    let mut node = node(ExitRule::Any, &["web", "other"]);
    tells(&mut node, &["web"]);
    ends(&mut node, "other", 0);
    assert_eq!(node.node.phase(), NodePhase::Stopping);
}

#[test]
fn a_node_that_ends_lets_a_job_finish_what_it_is_told_of_an_update() {
    let stopping = |node: &PlacedNode| {
        ["web", "other"].map(|it| node.node.job(it).expect("a job").phase() == Phase::Stopping)
    };
    let begin = || {
        let mut node = node(ExitRule::Any, &["web", "other"]);
        let telling = Some(name("web"));
        let facts = RolloutFacts { telling, ..RolloutFacts::default() };
        node.step(Input::Rollout(Box::new(facts)));
        let outcome = node.step(Input::Request(Request::Shutdown));
        assert_eq!(stopping(&node), [false, true]);
        (node, outcome)
    };
    let (mut node, _) = begin();
    tells(&mut node, &[]);
    assert_eq!(stopping(&node), [true, true], "it has finished");
    // It has its signal in time, and who is impatient does not wait.
    let (mut node, outcome) = begin();
    let timer = outcome.commands.into_iter().find_map(|it| match it {
        Command::SetTimer { token, at } if token == stop_time_of("web") => Some(at),
        _ => None,
    });
    node.now = timer.expect("it has a time").0;
    node.step(Input::Timer { token: stop_time_of("web") });
    assert!(stopping(&node)[0]);
    let (mut node, _) = begin();
    node.step(Input::Signalled { signal: Signal::TERM });
    node.step(Input::Signalled { signal: Signal::TERM });
    assert!(stopping(&node)[0]);
}

#[test]
fn a_reload_is_known_to_run_until_it_has_ended() {
    let reload = Some(Reload::Exec(vec!["reload".to_owned()]));
    let mut node = PlacedNode::new(plan(vec![JobPlan { reload, ..job("web", None) }], false));
    node.step(Input::Spawned { job: name("web"), incarnation: 1, pid: 7 });
    assert_eq!(node.node.open_reload(&name("web")), None);
    node.step(Input::Request(Request::Reload { job: name("web") }));
    let number = node.node.open_reload(&name("web")).expect("it runs");
    let owner = TaskOwner::Job { job: name("web"), incarnation: 1, kind: TaskKind::Reload };
    let (id, exit) = (TaskId { number, owner }, Exit::Code { code: 0 });
    let outcome = TaskOutcome { exit, output: String::new(), truncated: false };
    node.step(Input::TaskDone { id, outcome });
    assert_eq!(node.node.open_reload(&name("web")), None);
}
