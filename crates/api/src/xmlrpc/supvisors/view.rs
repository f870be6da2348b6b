//! The fleet as Supvisors would see it: nodes, applications, and processes united over all nodes.
//! A node without `[fleet]` is a fleet of one.

use super::stage::Stage;
use crate::{
    RouterState,
    xmlrpc::{
        fault::{Code, Fault},
        supervisor::groups,
    },
};
use mainstay_core::{
    app::AppFailure,
    fleet::PeerState,
    job::{Desired, Phase},
    name::Name,
    plan::Plan,
};
use mainstay_wire::api::{CopyStatus, FleetStatus, JobStatus, NodeStatus, PlacedStatus};
use std::{collections::BTreeMap, sync::Arc};

/// Everything that one call looks at, as of one moment.
pub(super) struct View {
    pub(super) status: Arc<NodeStatus>,
    pub(super) fleet: Option<FleetStatus>,
    pub(super) plan: Plan,
    failures: BTreeMap<Name, AppFailure>,
    /// By group, then by name.
    pub(super) processes: Vec<UnitedProcess>,
}

/// A process, wherever it runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct UnitedProcess {
    pub(super) group: String,
    pub(super) name: Name,
    /// It belongs to an app.
    pub(super) managed: bool,
    /// The fleet places it.
    pub(super) placed: bool,
    pub(super) phase: Phase,
    /// It has ended by itself, and not as it should.
    pub(super) failed: bool,
    pub(super) nodes: Vec<Name>,
    pub(super) args: Vec<String>,
    pub(super) disabled: bool,
    pub(super) conflict: bool,
    /// Why it is nowhere.
    pub(super) reason: Option<String>,
}

/// A node as it is seen from here.
pub(super) struct Member {
    pub(super) name: Name,
    pub(super) state: PeerState,
    pub(super) load: u32,
    pub(super) host: String,
    /// Of its XML-RPC; 0: not known.
    pub(super) port: u16,
}

/// What is known of an application.
pub(super) struct Application<'a> {
    pub(super) name: &'a str,
    pub(super) managed: bool,
    pub(super) failure: AppFailure,
    pub(super) processes: Vec<&'a UnitedProcess>,
}

impl UnitedProcess {
    /// As `supervisorctl` writes it.
    pub(super) fn namespec(&self) -> String {
        match self.group == self.name.as_str() {
            true => self.group.clone(),
            false => format!("{}:{}", self.group, self.name),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Running | Phase::Backoff)
    }

    pub(super) fn is_stopped(&self) -> bool {
        !self.is_running() && self.phase != Phase::Stopping
    }

    fn of_fleet(placed: &PlacedStatus) -> UnitedProcess {
        let runs = placed.copies.iter().filter(|copy| copy.is_home());
        let first = placed.copies.first();
        let phase = match (first, &placed.reason) {
            // Without a home it counts as failed, as there.
            (None, Some(_)) => Phase::Fatal,
            (Some(copy), Some(_)) if !copy.is_home() => Phase::Fatal,
            (Some(copy), _) => phase(copy),
            (None, None) => Phase::Stopped,
        };
        UnitedProcess {
            group: placed.app.to_string(),
            name: placed.job.clone(),
            managed: true,
            placed: true,
            phase,
            failed: first.is_some_and(|copy| copy.failed),
            nodes: runs.map(|copy| copy.node.clone()).collect(),
            args: placed.args.clone(),
            disabled: placed.desired == Desired::Disabled,
            conflict: placed.conflict,
            reason: placed.reason.clone(),
        }
    }

    fn of_node(job: &JobStatus, node: Option<&Name>) -> UnitedProcess {
        let waits = job.desired == Desired::Run && !job.waiting.is_empty();
        let phase = match job.state {
            Phase::Stopped if waits => Phase::Starting,
            phase => phase,
        };
        let mut process = UnitedProcess {
            group: groups::group(job).to_owned(),
            name: job.name.clone(),
            managed: job.app.is_some(),
            placed: false,
            phase,
            failed: job.state == Phase::Fatal || (job.state == Phase::Exited && !job.ended_well()),
            nodes: Vec::new(),
            args: job.args.clone(),
            disabled: job.desired == Desired::Disabled,
            conflict: false,
            reason: None,
        };
        if process.is_running() || process.phase == Phase::Stopping {
            process.nodes.extend(node.cloned());
        }
        process
    }
}

fn phase(copy: &CopyStatus) -> Phase {
    match copy.state.as_str() {
        // One that waits for its turn counts as starting.
        "WAITING" | "STARTING" => Phase::Starting,
        "RUNNING" => Phase::Running,
        "BACKOFF" => Phase::Backoff,
        "STOPPING" => Phase::Stopping,
        "EXITED" => Phase::Exited,
        "FATAL" => Phase::Fatal,
        _ => Phase::Stopped,
    }
}

impl Application<'_> {
    /// From all its processes: what is on its way counts before what is there.
    pub(super) fn state(&self) -> (i32, &'static str) {
        let any = |phases: &[Phase]| self.processes.iter().any(|it| phases.contains(&it.phase));
        if any(&[Phase::Stopping]) {
            (3, "STOPPING")
        } else if any(&[Phase::Starting, Phase::Backoff]) {
            (1, "STARTING")
        } else if any(&[Phase::Running]) {
            (2, "RUNNING")
        } else {
            (0, "STOPPED")
        }
    }
}

impl View {
    pub(super) async fn look(state: &RouterState) -> Result<View, Fault> {
        let handle = &state.handle;
        let (status, fleet) = (handle.status().await?, handle.fleet().await?);
        let (plan, apps) = (handle.plan().await?, handle.apps().await?);
        let failures = apps.into_iter().map(|app| (app.name, app.failure)).collect();
        let here = Name::new(&status.node).ok();
        let placed = |job: &JobStatus| {
            fleet.as_ref().is_some_and(|fleet| fleet.job(job.name.as_str()).is_some())
        };
        let own = status.jobs.iter().filter(|job| !placed(job));
        let mut processes: Vec<UnitedProcess> =
            own.map(|job| UnitedProcess::of_node(job, here.as_ref())).collect();
        processes.extend(fleet.iter().flat_map(|fleet| &fleet.jobs).map(UnitedProcess::of_fleet));
        processes.sort_by(|a, b| (&a.group, &a.name).cmp(&(&b.group, &b.name)));
        Ok(View { status, fleet, plan, failures, processes })
    }

    pub(super) fn stage(&self) -> Stage {
        match &self.fleet {
            Some(fleet) => Stage::of_fleet(&fleet.state),
            None => Stage::of_node(self.status.state),
        }
    }

    pub(super) fn master(&self) -> Option<String> {
        match &self.fleet {
            Some(fleet) => fleet.master.as_ref().map(ToString::to_string),
            None => Some(self.status.node.clone()),
        }
    }

    /// The node that answers.
    pub(super) fn me(&self) -> &str {
        &self.status.node
    }

    /// This one first.
    pub(super) fn members(&self) -> Vec<Member> {
        let own_port = self.plan.api.xmlrpc.as_ref().and_then(|it| it.listen);
        let own_port = own_port.map_or(0, |listen| listen.port());
        let Some(fleet) = &self.fleet else {
            let name = Name::new(self.me()).ok().or_else(|| Name::new("node").ok());
            let alone = |name| Member {
                name,
                state: PeerState::Running,
                load: 0,
                host: self.me().to_owned(),
                port: own_port,
            };
            return name.map(alone).into_iter().collect();
        };
        let planned = self.plan.fleet.as_ref().map_or(&[][..], |fleet| &fleet.nodes);
        let host = |name: &Name| {
            let known = planned.iter().find(|node| node.name == *name);
            let host = known.and_then(|node| node.address.rsplit_once(':'));
            host.map_or_else(|| name.to_string(), |(host, _)| host.to_owned())
        };
        let member = |node: &mainstay_wire::api::FleetNodeStatus| Member {
            host: host(&node.name),
            port: if node.name.as_str() == self.me() { own_port } else { 0 },
            name: node.name.clone(),
            state: node.state,
            load: node.load,
        };
        fleet.nodes.iter().map(member).collect()
    }

    /// In the order of their names.
    pub(super) fn applications(&self) -> Vec<Application<'_>> {
        let mut names: Vec<&str> = self.processes.iter().map(|it| it.group.as_str()).collect();
        names.extend(self.plan.apps.iter().map(|app| app.name.as_str()));
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(|name| self.known(name)).collect()
    }

    fn known<'a>(&'a self, name: &'a str) -> Application<'a> {
        let processes: Vec<&UnitedProcess> =
            self.processes.iter().filter(|it| it.group == name).collect();
        let managed =
            self.plan.app(name).is_some() || processes.iter().any(|process| process.managed);
        let failure = match managed {
            true => {
                let known = self.failures.iter().find(|(app, _)| app.as_str() == name);
                known.map(|(_, failure)| *failure).unwrap_or_default()
            }
            false if processes.iter().any(|process| process.failed) => AppFailure::Minor,
            false => AppFailure::None,
        };
        Application { name, managed, failure, processes }
    }

    pub(super) fn application<'a>(&'a self, name: &'a str) -> Result<Application<'a>, Fault> {
        let found = self.known(name);
        if found.processes.is_empty() && self.plan.app(name).is_none() {
            let text = format!("application={name} unknown to Supvisors");
            return Err(Fault::about(Code::BadName, text));
        }
        Ok(found)
    }

    /// What `name`, `group:name` or `group:*` stands for.
    pub(super) fn named<'a>(&'a self, namespec: &'a str) -> Result<Vec<&'a UnitedProcess>, Fault> {
        let (group, name) = namespec.split_once(':').unwrap_or((namespec, namespec));
        let application = self.application(group)?;
        if matches!(name, "" | "*") {
            return Ok(application.processes);
        }
        let found = application.processes.iter().find(|it| it.name.as_str() == name);
        found.map(|process| vec![*process]).ok_or_else(|| {
            let text = format!("process={name} unknown in application={group}");
            Fault::about(Code::BadName, text)
        })
    }

    /// The nodes of a name.
    pub(super) fn member(&self, identifier: &str) -> Result<Member, Fault> {
        let found = self.members().into_iter().find(|it| it.name.as_str() == identifier);
        found.ok_or_else(|| {
            let text = format!("identifier={identifier} is unknown to Supvisors");
            Fault::about(Code::BadName, text)
        })
    }
}
