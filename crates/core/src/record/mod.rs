//! Records: what the next agent must know, in the form in which a journal holds it.
//!
//! A step returns a record of each thing it has changed; a snapshot is a record of everything.
//! Whoever keeps them need not know what they are: [`Memory`] takes them one by one, a later one in
//! place of an earlier one, and becomes the node again. A record of a kind that is not known here
//! was written by a newer binary: it is passed over and counted.
//!
//! To journal one more value: give it a kind here (in `Record`, `RecordKind` and `Memory`), a
//! `Journaled` place in the node, and a line in `node/records`.

mod encoded;
mod journaled;

pub use encoded::Encoded;
pub(crate) use journaled::{Journaled, JournaledMap};

use crate::{
    app::{AppRestarts, AppStage, RestReason, Wave},
    discovery::Watch,
    environ::Environ,
    job::{Desired, Job},
    name::Name,
    node::{Leaving, Node, NodeState, Placement, RemoteJob},
    plan::Plan,
    rollout::RolloutSources,
    task::Tasks,
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, MapAccess, Visitor},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

/// The new state of one thing. New fields in it have defaults, so that an older record can be read.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// The number of the last event. Only in a snapshot: what has changed comes with its events.
    Seq(u64),
    /// The plan in force. What it does not have is forgotten.
    Plan(Encoded<Plan>),
    /// The node itself, apart from all that follows.
    Node(Box<NodeState>),
    Environ(Environ),
    /// The tasks that have not ended.
    Tasks(Tasks),
    Job(Name, Arc<Job>),
    /// A job that is gone from the plan, while its process is not.
    Leaving(Box<Leaving>),
    /// A job that is leaving, by an older binary, whose plan still has it.
    Leaves(Name),
    /// A job has left.
    JobGone(Name),
    App(Name, AppStage),
    /// How often an app has come back after a crash.
    AppRestarts(Name, AppRestarts),
    /// The waves in which an app is restarted, while it is.
    AppWave(Name, Option<Wave>),
    /// Why its app has a job at rest, if it has.
    Rest(Name, Option<RestReason>),
    Watch(Name, Watch),
    /// What is known of a job that the fleet places.
    Placed(Name, Placement),
    /// A placed job as it is on other nodes.
    Elsewhere(Name, RemoteJob),
    /// What profiles and templates have said.
    RolloutSources(RolloutSources),
    /// Of a newer binary.
    #[serde(skip)]
    Unknown,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum RecordKind {
    Seq,
    Plan,
    Node,
    Environ,
    Tasks,
    Job,
    Leaving,
    Leaves,
    JobGone,
    App,
    AppRestarts,
    AppWave,
    Rest,
    Watch,
    Placed,
    Elsewhere,
    RolloutSources,
    #[serde(other)]
    Unknown,
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Record, D::Error> {
        deserializer.deserialize_map(RecordVisitor)
    }
}

struct RecordVisitor;

impl<'de> Visitor<'de> for RecordVisitor {
    type Value = Record;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record under the name of its kind")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Record, A::Error> {
        let Some(kind) = map.next_key()? else { return Ok(Record::Unknown) };
        let record = match kind {
            RecordKind::Seq => Record::Seq(map.next_value()?),
            RecordKind::Plan => Record::Plan(map.next_value()?),
            RecordKind::Node => Record::Node(map.next_value()?),
            RecordKind::Environ => Record::Environ(map.next_value()?),
            RecordKind::Tasks => Record::Tasks(map.next_value()?),
            RecordKind::Job => named(map.next_value()?, Record::Job),
            RecordKind::Leaving => Record::Leaving(map.next_value()?),
            RecordKind::Leaves => Record::Leaves(map.next_value()?),
            RecordKind::JobGone => Record::JobGone(map.next_value()?),
            RecordKind::App => named(map.next_value()?, Record::App),
            RecordKind::AppRestarts => named(map.next_value()?, Record::AppRestarts),
            RecordKind::AppWave => named(map.next_value()?, Record::AppWave),
            RecordKind::Rest => named(map.next_value()?, Record::Rest),
            RecordKind::Watch => named(map.next_value()?, Record::Watch),
            RecordKind::Placed => named(map.next_value()?, Record::Placed),
            RecordKind::Elsewhere => named(map.next_value()?, Record::Elsewhere),
            RecordKind::RolloutSources => Record::RolloutSources(map.next_value()?),
            RecordKind::Unknown => map.next_value().map(|IgnoredAny| Record::Unknown)?,
        };
        // Nothing else belongs to it; a newer binary may know better.
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(record)
    }
}

fn named<T>((name, value): (Name, T), record: impl FnOnce(Name, T) -> Record) -> Record {
    record(name, value)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutOfPlan {
    Leaving,
    Gone,
}

/// What records come to: a node that has not been put together yet.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    pub(crate) seq: u64,
    /// `None`: the node has not begun.
    pub(crate) state: Option<NodeState>,
    /// The last plan that came into force since the snapshot.
    plan: Option<Plan>,
    leaving: Vec<Leaving>,
    /// What is leaving, or has left, a plan that an older binary wrote.
    out_of_plan: BTreeMap<Name, OutOfPlan>,
    pub(crate) environ: Environ,
    pub(crate) tasks: Tasks,
    pub(crate) jobs: BTreeMap<Name, Arc<Job>>,
    pub(crate) apps: BTreeMap<Name, AppStage>,
    pub(crate) app_restarts: BTreeMap<Name, AppRestarts>,
    pub(crate) app_waves: BTreeMap<Name, Wave>,
    pub(crate) rests: BTreeMap<Name, RestReason>,
    pub(crate) watches: BTreeMap<Name, Watch>,
    pub(crate) placements: BTreeMap<Name, Placement>,
    pub(crate) remotes: BTreeMap<Name, RemoteJob>,
    pub(crate) rollout: RolloutSources,
    passed_over: usize,
}

impl Memory {
    /// A later record of the same thing replaces an earlier one.
    pub fn take(&mut self, record: Record) {
        match record {
            Record::Seq(seq) => self.told(seq),
            Record::Plan(plan) => self.take_plan(plan.into_parts().0),
            Record::Node(state) => self.state = Some(*state),
            Record::Environ(environ) => self.environ = environ,
            Record::Tasks(tasks) => self.tasks = tasks,
            Record::Job(name, job) => drop(self.jobs.insert(name, job)),
            Record::Leaving(slot) => self.leaving.push(*slot),
            Record::Leaves(name) => drop(self.out_of_plan.insert(name, OutOfPlan::Leaving)),
            Record::JobGone(name) => {
                self.jobs.remove(&name);
                self.rests.remove(&name);
                self.placements.remove(&name);
                self.remotes.remove(&name);
                self.leaving.retain(|it| *it.name() != name);
                self.out_of_plan.insert(name, OutOfPlan::Gone);
            }
            Record::App(name, stage) => drop(self.apps.insert(name, stage)),
            Record::AppRestarts(name, it) => drop(self.app_restarts.insert(name, it)),
            Record::AppWave(name, Some(wave)) => drop(self.app_waves.insert(name, wave)),
            Record::AppWave(name, None) => drop(self.app_waves.remove(&name)),
            Record::Rest(name, Some(reason)) => drop(self.rests.insert(name, reason)),
            Record::Rest(name, None) => drop(self.rests.remove(&name)),
            Record::Watch(name, watch) => drop(self.watches.insert(name, watch)),
            Record::Placed(name, it) => drop(self.placements.insert(name, it)),
            Record::Elsewhere(name, it) => drop(self.remotes.insert(name, it)),
            Record::RolloutSources(sources) => self.rollout = sources,
            Record::Unknown => self.passed_over += 1,
        }
    }

    /// What is not in a new plan is forgotten with it.
    fn take_plan(&mut self, plan: Plan) {
        let members: BTreeSet<&Name> =
            plan.jobs.iter().filter(|job| job.app.is_some()).map(|job| &job.name).collect();
        self.apps.retain(|name, _| plan.app(name.as_str()).is_some());
        self.app_restarts.retain(|name, _| plan.app(name.as_str()).is_some());
        self.app_waves.retain(|name, _| plan.app(name.as_str()).is_some());
        self.rests.retain(|name, _| members.contains(name));
        self.remotes.retain(|name, _| members.contains(name));
        self.watches.retain(|name, _| plan.watch(name.as_str()).is_some());
        self.leaving.clear();
        self.out_of_plan.clear();
        self.plan = Some(plan);
    }

    /// Events up to this one are told.
    pub fn told(&mut self, seq: u64) {
        self.seq = self.seq.max(seq);
    }

    /// The number of the last event that there is a trace of.
    #[must_use]
    pub fn last_told(&self) -> u64 {
        self.seq
    }

    /// Jobs that a user disabled in an earlier run. Those that there is a record of have their say.
    pub fn disable(&mut self, jobs: impl IntoIterator<Item = Name>) {
        for name in jobs {
            self.jobs.entry(name).or_insert_with(|| Arc::new(Job::disabled()));
        }
    }

    /// Nothing becomes visible before it is journaled: without a record nothing has begun.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.state.is_some()
    }

    /// What users have changed for whatever is started.
    #[must_use]
    pub fn environ(&self) -> &Environ {
        &self.environ
    }

    /// Whether there is a plan that came into force since the snapshot.
    #[must_use]
    pub fn has_plan(&self) -> bool {
        self.plan.is_some()
    }

    /// Records are missing: a plan that was written down elsewhere is the later one.
    pub fn prefer_written_plan(&mut self, written: Option<&Plan>) {
        if written.is_some() {
            self.plan = None;
        }
    }

    /// The plan that was in force, given the one that was written down elsewhere; `None`: it is
    /// nowhere.
    #[must_use]
    pub fn plan_in_force(&mut self, written: Option<Plan>) -> Option<Plan> {
        let mut plan = self.plan.take().or(written)?;
        let out = std::mem::take(&mut self.out_of_plan);
        for job in plan.jobs.extract_if(.., |job| out.contains_key(&job.name)) {
            if out.get(&job.name) == Some(&OutOfPlan::Leaving) {
                self.leaving.push(Leaving::new(job));
            }
        }
        Some(plan)
    }

    pub(crate) fn take_leaving(&mut self) -> Vec<Leaving> {
        std::mem::take(&mut self.leaving)
    }

    /// How many records of unknown kinds there were.
    #[must_use]
    pub fn passed_over(&self) -> usize {
        self.passed_over
    }

    /// The node as it was. A job without a record is new.
    #[must_use]
    pub fn restore(self, plan: Plan) -> Node {
        Node::restore(plan, self)
    }

    /// Disabled jobs that the plan does not have.
    pub(crate) fn take_disabled(&mut self) -> impl Iterator<Item = Name> {
        let left = std::mem::take(&mut self.jobs).into_iter();
        left.filter(|(_, job)| job.desired() == Desired::Disabled).map(|(name, _)| name)
    }
}
