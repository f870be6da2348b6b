//! How an agent begins: it greets the keeper, then goes on where an earlier agent of this run
//! stopped, or applies the configuration if it is the first.

use crate::{
    agent::{About, Agent, End, Origin},
    checks::Checks,
    crash::Crash,
    discovery::Discovery,
    effects::archive::Archive,
    effects::disabled::DisabledFile,
    effects::give_back::GiveBack,
    effects::outgoing::Outgoing,
    effects::pending_acks::PendingAcks,
    effects::pushed_settings::PushedSettings,
    effects::watch_files::WatchFiles,
    event_log::EventLog,
    fleet,
    handle::{Handle, Shared},
    inputs::cron::Crons,
    inputs::link::{Link, LinkError},
    inputs::timers::Timers,
    journal::found::Found,
    journal::plan_file::PlanWriter,
    journal::recovery::Recovery,
    journal::state_files,
    metrics::Meter,
    metrics::user_metrics::UserMetrics,
    reload::{options::Options, previews::Previews},
    rollout::{self, RolloutSlot},
    trace,
    view::Facts,
};
use mainstay_core::{
    name::Name,
    node::{Held, Input, LostJournal},
    plan::Listeners,
};
use mainstay_wire::{
    api::Invalid,
    format::{Format, NUMBER},
    link::{self, ExitRecord, HeldJob, ToAgent, ToKeeper, Upgraded, Welcome},
    run_dir::Dirs,
};
use std::{
    collections::{BTreeMap, VecDeque},
    env,
};
use tokio::{sync::watch, time::Instant};

/// What begins with this agent.
#[derive(Debug)]
enum Begins {
    /// The run.
    Run,
    /// Only the agent; there was one before.
    Agent { lost: Option<LostJournal> },
}

/// What an agent has found, and not acted on yet.
#[derive(Debug)]
pub(crate) struct Beginning {
    welcome: Box<Welcome>,
    begins: Begins,
    /// The jobs that the state directory has as disabled.
    disabled: Vec<Name>,
}

impl Beginning {
    /// Nothing of this run has happened yet.
    pub(crate) fn is_of_run(&self) -> bool {
        matches!(self.begins, Begins::Run)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BootError {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error("the keeper did not begin with a welcome")]
    NotWelcome,
    #[error("the keeper speaks format {0}, this agent format {NUMBER}: they are of two versions")]
    Format(u32),
    #[error(transparent)]
    Config(#[from] Invalid),
    #[error(transparent)]
    Fleet(#[from] fleet::JoinError),
    #[error(transparent)]
    Rollout(#[from] rollout::OpenError),
}

/// Everything up to the first decision: the node is as it was left or written, discovery's tasks run,
/// and the API can be served. [`Agent::begin`] is the next step.
///
/// # Errors
/// The keeper or the configuration cannot be understood.
pub async fn boot(
    mut link: Link,
    options: &Options,
    crash: Crash,
) -> Result<(Agent, Handle), BootError> {
    let (welcome, found) = tokio::join!(greet(&mut link), Found::read(&options.dirs.run));
    let mut welcome = welcome?;
    let Recovery { journal, node, events, taken, upgrade, plan_on_disk, disabled, first, lost } =
        Recovery::begin(options, &welcome, found)?;
    if lost.is_some() {
        state_files::recall(&mut welcome);
    }
    trace::follow(&node.plan().log);
    trace::set_level(&node.plan().node.log_level);
    let (fleet, peers) = fleet::join(node.plan(), &welcome).await?.unzip();
    let (changes, rollout_changes) = watch::channel(0);
    let rollout = node.plan().rollout.as_ref();
    let name = &node.plan().node.name;
    let dirs = Dirs { run: welcome.run_dir.clone(), state: welcome.state_dir.clone() };
    let rollout =
        RolloutSlot::open(rollout, name, dirs.clone(), &options.renderer, changes).await?;
    let event_log = EventLog::new(welcome.run.clone(), events);
    let (api, api_plan) = watch::channel(node.plan().api.clone());
    let user_metrics = UserMetrics::open(&options.dirs.run, &welcome.run, node.plan());
    user_metrics.keep_written();
    let (listeners, listeners_now) = watch::channel(Listeners::of(node.plan()));
    let shared = Shared {
        dirs,
        api: api_plan,
        user_metrics: user_metrics.clone(),
        listeners: listeners_now,
        peers,
        rollout_changes,
    };
    let (handle, calls) = Handle::new(event_log.clone(), options.clone(), shared);
    let mut agent = Agent {
        about: About {
            run: welcome.run.clone(),
            run_dir: welcome.run_dir.clone(),
            state_dir: welcome.state_dir.clone(),
            agent_restarts: welcome.agent_restarts,
        },
        facts: welcome.jobs.iter().filter_map(facts).collect(),
        node,
        journal,
        event_log,
        link,
        calls,
        api,
        crash,
        archive: Archive::start(),
        seen_tokens: taken,
        upgrade,
        told: welcome.told,
        timers: Timers::default(),
        outgoing: Outgoing::new(),
        previews: Previews::new(),
        checks: Checks::new(),
        crons: Crons::default(),
        disabled: DisabledFile::new(&options.dirs.state),
        discovery: Discovery::new(),
        watch_files: WatchFiles::start(&welcome.run_dir),
        own: VecDeque::new(),
        inspections: Default::default(),
        upgrades: Default::default(),
        plan_on_disk,
        plan_writer: PlanWriter::new(),
        retry_at: Instant::now(),
        pending_acks: PendingAcks::default(),
        pushed_settings: PushedSettings::of(&welcome.jobs),
        meter: Meter::new(),
        addresses: Vec::new(),
        address_missing: false,
        user_metrics,
        listeners,
        give_back: GiveBack::default(),
        fleet,
        fleet_is_behind: true,
        rollout,
        over: None,
        last_awake: mainstay_sys::clock::boottime(),
        beginning: None,
    };
    let begins = if first { Begins::Run } else { Begins::Agent { lost } };
    agent.beginning = Some(Beginning { welcome: Box::new(welcome), begins, disabled });
    agent.push_node_log();
    agent.link.flush()?;
    let (jobs, watches) = (agent.node.plan().jobs.len(), agent.node.plan().watches.len());
    tracing::debug!("loaded config: {jobs} jobs, {watches} watches");
    agent.look_for_addresses();
    agent.open_discovery();
    Ok((agent, handle))
}

async fn greet(link: &mut Link) -> Result<Welcome, BootError> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let hello = ToKeeper::Hello { format: Format::OURS, version };
    link.push(&hello).expect("a greeting fits a frame");
    link.flush()?;
    match link.receive().await? {
        ToAgent::Welcome(welcome) => match welcome.format.is_readable_since(link::OLDEST) {
            true => Ok(*welcome),
            false => Err(BootError::Format(welcome.format.number)),
        },
        _ => Err(BootError::NotWelcome),
    }
}

fn facts(held: &HeldJob) -> Option<(Name, Facts)> {
    let live = held.live.as_ref()?;
    let facts = Facts {
        incarnation: live.incarnation,
        tree: Some(live.tree),
        unenforced: live.unenforced.clone(),
        notify: live.notified.clone(),
    };
    Some((held.job.clone(), facts))
}

/// What a live job has said about itself, but for its regular signs of life.
fn notification(held: &HeldJob) -> Option<(Name, u64, BTreeMap<String, String>)> {
    let live = held.live.as_ref().filter(|live| live.spawned)?;
    let mut fields = live.notified.clone();
    fields.remove("WATCHDOG");
    (!fields.is_empty()).then(|| (held.job.clone(), live.incarnation, fields))
}

/// One whose exec is still under way is not alive yet: `Spawned` or its end will follow.
fn held(job: HeldJob, records: &[ExitRecord]) -> Held {
    let HeldJob { job, highest, live, open, summary } = job;
    let recorded = |record: &ExitRecord| record.incarnation == highest && record.job == job;
    let pending = live.is_some() || records.iter().any(recorded);
    let live = live.filter(|live| live.spawned).map(|live| (live.incarnation, live.pid));
    Held { job, highest, live, pending, open, summary }
}

impl Agent {
    /// The first input: from here on jobs start, and the keeper knows that there is an agent.
    ///
    /// # Errors
    /// What has ended the loop before it began.
    pub fn begin(&mut self) -> Result<(), End> {
        let Some(Beginning { welcome, begins, disabled }) = self.beginning.take() else {
            return Ok(());
        };
        if matches!(begins, Begins::Run) {
            self.tell_disabled();
        }
        let takes_over = !matches!(begins, Begins::Run);
        self.hold_ready(takes_over);
        self.decide_first(*welcome, begins)?;
        self.begin_rollout(takes_over)?;
        // An agent that died before it could answer has left something else there.
        self.keep_what_counts(disabled);
        Ok(())
    }

    /// Nothing of this run has happened yet.
    #[must_use]
    pub fn begins_run(&self) -> bool {
        self.beginning.as_ref().is_some_and(Beginning::is_of_run)
    }

    /// Nobody who starts a node expects jobs of it to stay down.
    fn tell_disabled(&self) {
        let is_ours = |job: &Name| self.node.job_plan(job.as_str()).is_some();
        let disabled: Vec<Name> = self.node.disabled().into_iter().filter(is_ours).collect();
        let names: Vec<&str> = disabled.iter().map(Name::as_str).collect();
        if !names.is_empty() {
            let (listed, typed) = (names.join(", "), names.join(" "));
            tracing::warn!(
                "disabled since an earlier run: {listed}; `mainstay enable {typed}` undoes that"
            );
        }
    }

    fn decide_first(&mut self, welcome: Welcome, begins: Begins) -> Result<(), End> {
        let held_now = welcome.jobs.clone();
        let notifications = welcome.jobs.iter().filter_map(notification).collect::<Vec<_>>();
        let input = match begins {
            Begins::Run => Input::Boot,
            Begins::Agent { lost } => Input::Attached {
                held: welcome.jobs.into_iter().map(|job| held(job, &welcome.records)).collect(),
                agent_restarts: welcome.agent_restarts,
                upgraded: self.untold(welcome.upgraded),
                lost,
            },
        };
        self.take(input, Origin::Welcome)?;
        self.forget_strangers(&held_now);
        self.push_settings();
        for (job, incarnation, fields) in notifications {
            // The last agent may not have got to it.
            self.take_notification(job, incarnation, fields)?;
        }
        for record in welcome.records {
            self.take_record(record)?;
        }
        for (token, signal) in welcome.signals {
            self.on_message(ToAgent::Signalled { token, signal })?;
        }
        // Before any timer: a stop cancels the restart that is due.
        for link::PendingControl { token, job, incarnation, request } in welcome.asked {
            self.on_message(ToAgent::Asked { token, job, incarnation, request })?;
        }
        self.compress_leftovers();
        self.say_ready();
        self.give_back.ask();
        self.meter.begin();
        Ok(self.link.flush()?)
    }

    fn open_discovery(&mut self) {
        self.discovery.apply(self.node.plan());
        for watch in &self.node.plan().watches {
            let known = self.node.watch(watch.name.as_str()).and_then(|it| it.instances().cloned());
            self.watch_files.put(&watch.name, known.unwrap_or_default());
        }
    }

    /// Upgrades that no earlier agent has journaled.
    fn untold(&mut self, upgraded: Vec<Upgraded>) -> Vec<(String, String)> {
        let told = self.upgrade;
        let news = upgraded.into_iter().filter(|upgrade| upgrade.number > told);
        news.map(|upgrade| {
            self.upgrade = upgrade.number;
            (upgrade.from, upgrade.to)
        })
        .collect()
    }

    /// What the keeper holds for jobs that have left the plan: the last agent died before it could
    /// say so.
    fn forget_strangers(&mut self, held: &[HeldJob]) {
        for HeldJob { job, live, .. } in held {
            if self.node.job_plan(job.as_str()).is_some() {
                continue;
            }
            if let Some(live) = live {
                self.say(&ToKeeper::Kill { job: job.clone(), incarnation: live.incarnation });
            }
            self.say(&ToKeeper::Forget { job: job.clone() });
        }
    }

    fn compress_leftovers(&self) {
        for job in &self.node.plan().jobs {
            if job.log.keep.compress {
                self.archive.catch_up(&self.about.state_dir.join("logs").join(job.name.as_str()));
            }
        }
    }
}
