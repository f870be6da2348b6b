//! What a reload applies is what its preview has found to differ.

use crate::script;
use mainstay_core::{
    clock::{Mono, Now},
    event::Kind,
    name::Name,
    node::{Effect, Input, Node, ReloadPreview, Request},
    plan::{JobPlan, Plan},
};

fn at(seconds: u64) -> Now {
    Now { mono: Mono(seconds * 1_000_000_000), wall: 0 }
}

/// Others may ask in another thread.
#[test]
fn a_node_can_be_previewed_elsewhere() {
    fn is_free<T: Clone + Send + 'static>(_: &T) {}
    is_free(&Node::new(Plan::new(script::default_node(), Vec::new())));
}

#[test]
fn what_was_compared_with_an_earlier_plan_is_compared_again() {
    let with = |jobs: &[&str]| {
        let job = |it: &&str| JobPlan::new(Name::new(it).expect("a name"), vec!["run".to_owned()]);
        Plan::new(script::default_node(), jobs.iter().map(job).collect())
    };
    let mut node = Node::new(with(&["a"]));
    node.step(at(0), Input::Boot);
    let preview = node.preview(at(1), &with(&["a", "b"])).expect("taken");
    let apply = |plan: Plan, preview: Option<ReloadPreview>| {
        Input::Request(Request::Apply { plan: plan.into(), preview: preview.map(Box::new) })
    };
    node.step(at(2), apply(with(&["b"]), None));
    let outcome = node.step(at(3), apply(with(&["a", "b"]), Some(preview)));
    let told = outcome.events.iter().find_map(|event| match &event.kind {
        Kind::Reloaded { added, changed, .. } => Some((added.len(), changed.len())),
        _ => None,
    });
    // `a` is on its way out and needs a new process; `b` is there already.
    assert_eq!(told, Some((0, 1)));
}

#[test]
fn a_preview_holds_until_a_job_that_differs_would_be_told_something_else() {
    let with = |command: &str| {
        let job = |name: &str, command: &str| {
            JobPlan::new(Name::new(name).expect("a name"), vec![command.to_owned()])
        };
        Plan::new(script::default_node(), vec![job("a", command), job("b", "run")])
    };
    let mut node = Node::new(with("run"));
    node.step(at(0), Input::Boot);
    let name = |name: &str| Name::new(name).expect("a name");
    for job in ["a", "b"] {
        node.step(at(0), Input::Spawned { job: name(job), incarnation: 1, pid: 7 });
    }
    let new = with("run faster");
    let preview = node.preview(at(1), &new).expect("taken");
    assert_eq!(preview.jobs[0].effect, Effect::Restart);
    // What does not differ may move as it likes.
    node.step(at(2), Input::Request(Request::Stop { job: name("b") }));
    assert!(node.is_current(&preview, &new));
    // It is at rest when the plan comes: it is not restarted any more.
    node.step(at(2), Input::Request(Request::Stop { job: name("a") }));
    assert!(!node.is_current(&preview, &new));
    let anew = node.preview(at(3), &new).expect("taken");
    assert_eq!(anew.jobs[0].effect, Effect::Later);
    assert!(node.is_current(&anew, &new));
}
