//! What an agent of the first release has left: the files of a node of format 2, as they were.
//!
//! It had jobs in every state, an app, a watch with an instance, a changed environment, a disabled
//! job and a second agent, and was in the middle of a reload: `slow` is on its way out.

use super::*;
use mainstay_core::{
    app::{AppPhase, RestReason},
    clock::Now,
    job::{Desired, Job, Phase},
    node::{Held, Input, Node},
};
use std::fs;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/format-2")
}

fn recovered() -> Recovered {
    let bytes = fs::read(testdata().join(FILE)).expect("it is there");
    let first = bytes.split(|byte| *byte == b'\n').next().and_then(decode);
    let Some(Line::Header(header)) = first else { panic!("no header") };
    let (recovered, valid) = read(&bytes, &header).expect("a journal");
    assert_eq!(valid, bytes.len(), "all of it is understood");
    recovered
}

#[test]
fn a_new_binary_may_follow_the_one_of_format_2() {
    plan_file::check(&testdata()).expect("the plan");
    check(&testdata()).expect("the journal");
}

#[test]
fn a_node_of_format_2_goes_on_where_it_was() {
    let mut recovered = recovered();
    let written = plan_file::read(&testdata()).and_then(|it| it.of("e7d1a12dfdf0eba4"));
    let written = written.expect("plan.json of this run");
    assert!(written.job("fresh").is_none(), "it is older than the reload");
    let plan = recovered.memory.plan_in_force(Some(written)).expect("the journal has it");
    assert!(plan.job("fresh").is_some() && plan.watch("cache").is_some());
    let last = recovered.events.back().map(|event| event.seq).expect("events");
    let environ: Vec<_> = recovered.memory.environ().iter().collect();
    assert_eq!(environ, [("COLOUR", Some("green"))]);

    assert!(recovered.memory.has_begun());
    let mut node = recovered.memory.restore(plan);
    let phase = |node: &Node, job: &str| node.job(job).map(Job::phase);
    assert_eq!(phase(&node, "web"), Some(Phase::Running));
    assert_eq!(phase(&node, "crashing"), Some(Phase::Backoff));
    assert_eq!(phase(&node, "hopeless"), Some(Phase::Fatal));
    assert_eq!(phase(&node, "migrate"), Some(Phase::Exited));
    assert_eq!(phase(&node, "slow"), Some(Phase::Stopping));
    assert_eq!(node.job("off").map(Job::desired), Some(Desired::Disabled));
    let apps: Vec<AppPhase> = node.apps().map(|app| app.phase).collect();
    assert_eq!(apps, [AppPhase::Running]);
    assert_eq!(node.rest_reason("someday"), Some(RestReason::NotReached), "its app says when");
    assert!(node.watch("cache").is_some_and(|watch| watch.is_up()));

    let live = |(plan, job): (&mainstay_core::plan::JobPlan, &Job)| Held {
        job: plan.name.clone(),
        highest: job.incarnation(),
        live: job.pid().map(|pid| (job.incarnation(), pid)),
        pending: job.pid().is_some(),
        open: job.pid().is_some(),
        summary: None,
    };
    let held = node.jobs().map(live).collect();
    let now = Now { mono: mainstay_core::clock::Mono(u64::MAX / 2), wall: 0 };
    let attached = Input::Attached { held, agent_restarts: 2, upgraded: Vec::new(), lost: None };
    let outcome = node.step(now, attached);
    assert_eq!(outcome.events.first().map(|event| event.seq), Some(last + 1), "none is lost");
    assert_eq!(phase(&node, "web"), Some(Phase::Running), "what runs is not touched");
}
