//! Jobs that an update of the rollout tells.

use crate::placed::{PlacedNode, job, name, plan};
use mainstay_core::{
    exit::Exit,
    node::{Input, Request},
    plan::{JobPlan, Reload},
    task::{TaskId, TaskKind, TaskOutcome, TaskOwner},
};

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
