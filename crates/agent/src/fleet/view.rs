//! The fleet as this node sees it, for people and programs.

use super::FleetRoom;
use mainstay_core::{
    app::AppPhase,
    fleet::{CopyState, JobCopy, JobStanding, NodeView, PlacedView},
    name::Name,
};
use mainstay_wire::api::{CopyStatus, FleetAppStatus, FleetNodeStatus, FleetStatus, PlacedStatus};
use std::collections::BTreeMap;

impl FleetRoom {
    pub(crate) fn status(&self) -> FleetStatus {
        let (of, fleet) = (self.keeping.node_of(), &self.fleet);
        let phases = fleet.app_phases();
        let app = |name: Name| {
            let state = phases.get(&name).copied().unwrap_or(AppPhase::Stopped);
            FleetAppStatus { name, state }
        };
        FleetStatus {
            name: of.fleet.clone(),
            node: of.node.clone(),
            id: of.id.clone(),
            state: fleet.stage().to_string(),
            master: fleet.term().map(|term| term.master.clone()),
            term: fleet.term().map(|term| term.number),
            nodes: fleet.nodes().into_iter().map(node).collect(),
            apps: fleet.app_names().into_iter().map(app).collect(),
            jobs: fleet.placed().into_iter().map(placed).collect(),
        }
    }

    pub(crate) fn placed(&self, job: &Name) -> Option<PlacedStatus> {
        self.fleet.placed_job(job).map(placed)
    }

    pub(crate) fn all_placed(&self) -> BTreeMap<Name, PlacedStatus> {
        let all = self.fleet.placed().into_iter();
        all.map(|view| (view.job.clone(), placed(view))).collect()
    }

    /// What there is to know of a placed job beside how it is here.
    pub(crate) fn why(&self, job: &Name) -> Vec<String> {
        let Some(view) = self.fleet.placed_job(job) else { return Vec::new() };
        let me = &self.keeping.node_of().node;
        let elsewhere: Vec<&str> =
            view.homes().filter(|node| *node != me).map(Name::as_str).collect();
        let runs = match elsewhere.is_empty() {
            true => None,
            false => Some(format!("the fleet has it on {}", elsewhere.join(", "))),
        };
        let differs = view.differs.contains(me).then(|| {
            "the configuration of this node has another job under its name: it is not placed here"
                .to_owned()
        });
        runs.into_iter().chain(reason(&view)).chain(differs).collect()
    }
}

fn node(view: NodeView) -> FleetNodeStatus {
    let NodeView { name, state, facts, load } = view;
    let facts = facts.as_deref();
    let active = |copy: &&JobCopy| copy.state.is_active();
    FleetNodeStatus {
        name,
        state,
        run: facts.map(|facts| facts.run.to_string()),
        machine: facts.map(|facts| facts.machine.clone()),
        load,
        jobs: facts.map_or(0, |facts| facts.jobs.values().filter(active).count()),
        drained: facts.is_some_and(|facts| facts.drained),
        ending: facts.is_some_and(|facts| facts.ending),
    }
}

fn placed(view: PlacedView) -> PlacedStatus {
    let (desired, conflict, reason) = (view.desired(), view.is_in_conflict(), reason(&view));
    let args = view.wish.as_ref().map(|wish| wish.args.clone()).unwrap_or_default();
    let PlacedView { job, app, copies, differs, known_by, .. } = view;
    let mut copies = copies;
    copies.sort_by_key(|(_, copy)| copy.state.rank());
    let copies = copies.into_iter().map(|(node, copy)| CopyStatus {
        node,
        state: word(copy.state).to_owned(),
        incarnation: copy.incarnation,
        by_hand: copy.by_hand,
    });
    let copies = copies.collect();
    PlacedStatus { job, app, desired, copies, args, conflict, reason, differs, known_by }
}

/// Why it is nowhere, in a sentence.
fn reason(view: &PlacedView) -> Option<String> {
    match view.standing.as_ref()? {
        JobStanding::NotPlaced(why) => Some(format!("not placed: {why}")),
        JobStanding::Lost { node } => Some(format!("it was lost with {node}, and waits for it")),
        JobStanding::OrderFailed { node } => {
            Some(format!("{node} was told to start it, and nothing came of it"))
        }
        JobStanding::Rest | JobStanding::Up { .. } | JobStanding::Ended { .. } => None,
    }
}

fn word(state: CopyState) -> &'static str {
    match state {
        CopyState::Stopped => "STOPPED",
        CopyState::Waiting => "WAITING",
        CopyState::Starting => "STARTING",
        CopyState::Running => "RUNNING",
        CopyState::Backoff => "BACKOFF",
        CopyState::Stopping => "STOPPING",
        CopyState::Exited { .. } => "EXITED",
        CopyState::Fatal => "FATAL",
    }
}
