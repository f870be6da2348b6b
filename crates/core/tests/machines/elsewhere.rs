//! Jobs that wait for one that the fleet has on another node: two nodes, of which one is told what
//! the other says of its copy.

use crate::placed::{PlacedNode, job, name, number, plan, spawned, start};
use mainstay_core::{
    exit::{Asked, Exit},
    fleet::{CopyState, JobSaid, OrderKind, RemoteCopy, RunId},
    node::{Command, Input, Outcome},
    plan::{Awaited, Condition, JobPlan, OnLoss, RestartOn, SourceRef, Trigger, When, While},
};

fn on(source: &str, event: &str) -> Condition {
    let event = serde_json::from_value(event.into()).expect("an event");
    Condition { source: SourceRef::Job(name(source)), event: Awaited::Event(event) }
}

fn once(source: &str, event: &str) -> When {
    When { once: vec![on(source, event)], ..When::default() }
}

fn each(source: &str, event: &str) -> When {
    When { trigger: Some(Trigger::Each(vec![on(source, event)])), ..When::default() }
}

fn following(source: &str, on_loss: OnLoss) -> Option<While> {
    Some(While { source: SourceRef::Job(name(source)), on_loss })
}

/// Both nodes have the job web, which is placed, and these.
fn two(others: Vec<JobPlan>) -> (PlacedNode, PlacedNode) {
    let jobs: Vec<JobPlan> = std::iter::once(job("web", Some("shop"))).chain(others).collect();
    (PlacedNode::new(plan(jobs.clone(), true)), PlacedNode::new(plan(jobs, true)))
}

impl PlacedNode {
    fn hears(&mut self, copy: Option<RemoteCopy>) -> Outcome {
        self.step(Input::Elsewhere { job: name("web"), copy })
    }

    /// The copy of web, as the others hear of it.
    fn tells(&self) -> Option<RemoteCopy> {
        let copy = self.copy("web");
        let home = Some((name("b"), RunId::new("run1")));
        Some(RemoteCopy { home, state: copy.state, said: copy.said() })
    }

    fn ends(&mut self, job: &str, code: i32) -> Outcome {
        let incarnation = self.node.job(job).expect("a job").incarnation();
        let (job, exit) = (name(job), Exit::Code { code });
        self.step(Input::Exited { job, incarnation, exit, usage: None, asked: Asked::None })
    }

    fn is_up(&self, job: &str) -> bool {
        self.node.job(job).is_some_and(|it| it.phase().is_up())
    }
}

fn stopped(outcome: &Outcome) -> Vec<&str> {
    let mut all = Vec::new();
    for command in &outcome.commands {
        if let Command::Stop { job, .. } = command {
            all.push(job.as_str());
        }
    }
    all
}

#[test]
fn a_latch_is_met_by_what_a_job_says_on_another_node() {
    let lone = JobPlan { when: once("web", "healthy"), ..job("lone", None) };
    let (mut there, mut here) = two(vec![lone]);
    assert_eq!(spawned(&here.hears(None)), Vec::<&str>::new());
    there.order(1, "web", start(&[]));
    assert_eq!(spawned(&here.hears(there.tells())), Vec::<&str>::new(), "it has not come up");
    there.runs("web");
    assert_eq!(spawned(&here.hears(there.tells())), ["lone"]);
}

#[test]
fn what_was_said_elsewhere_is_known_to_the_next_agent() {
    let lone = JobPlan { when: once("web", "exitSuccess"), ..job("lone", None) };
    let (mut there, mut here) = two(vec![lone]);
    there.order(1, "web", start(&[]));
    there.runs("web");
    there.ends("web", 0);
    here.hears(None);
    here.hears(there.tells());
    let again = here.memory.clone().restore(here.node.plan().clone());
    assert_eq!(again.remote("web"), here.node.remote("web"));
    assert!(again.not_come("lone").is_empty(), "the latch is met");
}

#[test]
fn who_follows_a_job_elsewhere_goes_down_and_comes_back_with_it() {
    let stops = JobPlan { follows: following("web", OnLoss::Stop), ..job("stops", None) };
    let begins = JobPlan { follows: following("web", OnLoss::Restart), ..job("begins", None) };
    let (mut there, mut here) = two(vec![stops, begins]);
    here.hears(None);
    there.order(1, "web", start(&[]));
    there.runs("web");
    assert_eq!(spawned(&here.hears(there.tells())), ["stops", "begins"]);
    here.step(Input::Spawned { job: name("stops"), incarnation: 1, pid: 8 });
    here.step(Input::Spawned { job: name("begins"), incarnation: 1, pid: 9 });
    let lost = RemoteCopy { home: None, state: CopyState::Stopped, said: JobSaid::default() };
    assert_eq!(stopped(&here.hears(Some(lost))), ["stops"], "nobody knows of a copy");
    here.ends("stops", 0);
    assert!(!here.is_up("stops") && here.is_up("begins"));
    let back = here.hears(there.tells());
    assert_eq!((spawned(&back), stopped(&back)), (vec!["stops"], vec!["begins"]));
    assert_eq!(stopped(&here.hears(there.tells())), Vec::<&str>::new(), "that is no news");
}

#[test]
fn a_trigger_comes_for_each_event_of_another_node_and_for_none_of_before() {
    let told = JobPlan { when: each("web", "exitFailed"), ..job("told", None) };
    let (mut there, mut here) = two(vec![told]);
    there.order(1, "web", start(&[]));
    there.runs("web");
    there.ends("web", 1);
    assert_eq!(spawned(&here.hears(there.tells())), Vec::<&str>::new(), "it was said before");
    there.order(2, "web", start(&[]));
    there.runs("web");
    there.ends("web", 1);
    assert_eq!(spawned(&here.hears(there.tells())), ["told"]);
    here.step(Input::Spawned { job: name("told"), incarnation: 1, pid: 8 });
    here.ends("told", 0);
    assert_eq!(spawned(&here.hears(there.tells())), Vec::<&str>::new(), "said again");
    // Away and back: no event is new.
    here.hears(Some(RemoteCopy {
        home: None,
        state: CopyState::Stopped,
        said: JobSaid::default(),
    }));
    assert_eq!(spawned(&here.hears(there.tells())), Vec::<&str>::new());
}

#[test]
fn a_hook_runs_where_the_job_has_run_whatever_its_own_app() {
    let hook = JobPlan { when: once("web", "stopped"), ..job("hook", Some("shop")) };
    let (mut there, mut here) = two(vec![hook]);
    assert_eq!(there.node.copies().len(), 1, "the fleet does not place a hook");
    here.hears(None);
    there.order(1, "web", start(&[]));
    there.runs("web");
    here.hears(there.tells());
    there.order(2, "web", OrderKind::Stop);
    assert_eq!(spawned(&there.ends("web", 0)), ["hook"]);
    assert_eq!(spawned(&here.hears(there.tells())), Vec::<&str>::new());
}

#[test]
fn a_life_goes_on_over_a_failover_and_ends_with_a_stop() {
    let lone = JobPlan { when: once("web", "exitFailed"), ..job("lone", None) };
    let mut web = job("web", Some("shop"));
    web.restart.on = RestartOn::Any;
    let all = plan(vec![web, lone], true);
    let (mut there, mut here) = (PlacedNode::new(all.clone()), PlacedNode::new(all));
    there.order(1, "web", start(&[]));
    there.runs("web");
    there.ends("web", 1);
    let said = there.copy("web").said();
    assert!(said.has(on("web", "exitFailed").event));
    let what = OrderKind::Start { args: Vec::new(), fails_over: true };
    let order = Input::Ordered { job: name("web"), order: number(2), what, said };
    let outcome = here.step(order);
    assert!(spawned(&outcome).contains(&"web"), "{outcome:?}");
    assert!(
        here.copy("web").said().has(on("web", "exitFailed").event),
        "others hear of it as well"
    );
    here.step(Input::Fleet(mainstay_core::fleet::FleetEvent::Joined { node: name("c") }));
    assert!(here.node.not_come("lone").is_empty(), "the latch is met here");
    here.runs("web");
    here.order(3, "web", OrderKind::Stop);
    here.ends("web", 0);
    here.order(4, "web", start(&[]));
    assert!(!here.copy("web").said().has(on("web", "exitFailed").event), "another life");
}
