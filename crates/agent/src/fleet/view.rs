//! The fleet as this node sees it, for people and programs.

use super::FleetRoom;
use mainstay_core::{
    clock::Mono,
    explain,
    fleet::{
        AppView, CopyState, JobCopy, JobStanding, NodeView, PlacedView, PlannedFate, PlannedJob,
        RequestAnswer,
    },
    job::Desired,
    name::Name,
};
use mainstay_wire::api::{
    AppDetail, AppMember, AppStatus, CopyStatus, FleetNodeStatus, FleetStatus, PlacedStatus,
    PlannedStart, StartPlan,
};
use std::collections::BTreeMap;

impl FleetRoom {
    pub(crate) fn status(&self) -> FleetStatus {
        let (of, fleet) = (self.keeping.node_of(), &self.fleet);
        FleetStatus {
            name: of.fleet.clone(),
            node: of.node.clone(),
            id: of.id.clone(),
            state: fleet.stage().to_string(),
            master: fleet.term().map(|term| term.master.clone()),
            term: fleet.term().map(|term| term.number),
            nodes: fleet.nodes().into_iter().map(node).collect(),
            apps: self.apps(),
            jobs: fleet.placed().into_iter().map(placed).collect(),
        }
    }

    pub(crate) fn apps(&self) -> Vec<AppStatus> {
        self.fleet.app_views().iter().map(app).collect()
    }

    /// One of them, with its jobs.
    pub(crate) fn app(&self, name: &str) -> Option<AppDetail> {
        let view = self.fleet.app_views().into_iter().find(|it| it.name.as_str() == name)?;
        let of_app = self.fleet.placed().into_iter().filter(|job| job.app == view.name);
        let member = |job: PlacedStatus| {
            let copy = job.copies.first();
            AppMember {
                failure: view.failed.get(&job.job).copied().unwrap_or_default(),
                state: copy.map_or("STOPPED", |copy| copy.state.as_str()).to_owned(),
                node: copy.map(|copy| copy.node.clone()),
                desired: job.desired,
                reason: job.reason,
                name: job.job,
            }
        };
        let jobs = of_app.map(placed).map(member).collect();
        Some(AppDetail { app: app(&view), jobs })
    }

    /// What a start of an app would do.
    pub(crate) fn plan_start(&self, now: Mono, app: &Name) -> Result<StartPlan, RequestAnswer> {
        let jobs = self.fleet.plan_start(now, app)?.into_iter().map(planned).collect();
        Ok(StartPlan { app: app.clone(), jobs })
    }

    pub(crate) fn placed(&self, job: &Name) -> Option<PlacedStatus> {
        self.fleet.placed_job(job).map(placed)
    }

    pub(crate) fn all_placed(&self) -> BTreeMap<Name, PlacedStatus> {
        let all = self.fleet.placed().into_iter();
        all.map(|view| (view.job.clone(), placed(view))).collect()
    }

    /// Somebody has disabled it, in the fleet or here.
    pub(crate) fn is_disabled(&self, job: &Name) -> bool {
        let view = self.fleet.placed_job(job);
        view.is_some_and(|it| {
            it.desired() == Desired::Disabled || it.disabled_on.contains(self.me())
        })
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
        let disabled = match (view.desired(), view.disabled_on.contains(me)) {
            (Desired::Disabled, _) => Some(format!(
                "it is disabled in the fleet, over boots: `mainstay enable {job}` undoes that"
            )),
            (Desired::Run | Desired::Rest, true) => Some(format!(
                "it is not placed here: `mainstay enable {job} --here` lets it be again"
            )),
            (Desired::Run | Desired::Rest, false) => None,
        };
        let app = self.fleet.app_views().into_iter().find(|it| it.name == view.app);
        let failed: Vec<_> = app.into_iter().flat_map(|app| app.failed).collect();
        let app_failure = explain::app_failure(&view.app, &failed);
        let here = runs.into_iter().chain(disabled).chain(reason(&view)).chain(differs);
        here.chain(app_failure).collect()
    }
}

fn app(view: &AppView) -> AppStatus {
    AppStatus { name: view.name.clone(), state: view.phase, failure: view.failure() }
}

fn planned(PlannedJob { job, start_sequence, fate }: PlannedJob) -> PlannedStart {
    let (node, runs, reason) = match fate {
        PlannedFate::Runs { node } => (Some(node), true, None),
        PlannedFate::Starts { node } => (Some(node), false, None),
        PlannedFate::NotPlaced(why) => (None, false, Some(format!("not placed: {why}"))),
        PlannedFate::Disabled => (None, false, Some("it is disabled".to_owned())),
        PlannedFate::NotReached => (None, false, Some("a job before it does not start".to_owned())),
    };
    PlannedStart { job, start_sequence, node, runs, reason }
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
        hands_over: facts.is_some_and(|facts| facts.hands_over),
        ending: facts.is_some_and(|facts| facts.ending),
    }
}

fn placed(view: PlacedView) -> PlacedStatus {
    let (desired, conflict, reason) = (view.desired(), view.is_in_conflict(), reason(&view));
    let args = view.wish.as_ref().map(|wish| wish.args.clone()).unwrap_or_default();
    let PlacedView { job, app, copies, differs, known_by, disabled_on, .. } = view;
    let mut copies = copies;
    copies.sort_by_key(|(_, copy)| copy.state.rank());
    let copies = copies.into_iter().map(|(node, copy)| CopyStatus {
        node,
        state: explain::copy_word(copy.state).to_owned(),
        incarnation: copy.incarnation,
        failed: matches!(copy.state, CopyState::Exited { well: false } | CopyState::Fatal),
        by_hand: copy.by_hand,
    });
    let copies = copies.collect();
    PlacedStatus {
        job,
        app,
        desired,
        copies,
        args,
        conflict,
        reason,
        differs,
        known_by,
        disabled_on,
    }
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
