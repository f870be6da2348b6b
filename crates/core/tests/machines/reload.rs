//! What a reload applies is what its preview has found to differ.

use crate::script;
use mainstay_core::{
    clock::{Mono, Now},
    event::Kind,
    name::Name,
    node::{Input, Node, ReloadPreview, Request},
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
        Input::Request(Request::Apply { plan: Box::new(plan), preview: preview.map(Box::new) })
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
