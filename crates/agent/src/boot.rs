//! How an agent begins: it greets the keeper, then goes on where an earlier agent of this run
//! stopped, or applies the configuration if it is the first.

use crate::{
    agent::{About, Agent, End, Origin},
    checks::Checks,
    crash::Crash,
    discovery::Discovery,
    effects::archive::Archive,
    effects::disabled::{self, Disabled},
    effects::give_back::GiveBack,
    effects::outgoing::Outgoing,
    effects::pending_acks::PendingAcks,
    effects::pushed_settings::PushedSettings,
    effects::watch_files::WatchFiles,
    event_log::EventLog,
    handle::{Handle, Shared},
    inputs::cron::Crons,
    inputs::link::{Link, LinkError},
    inputs::timers::Timers,
    journal::plan_file::{self, OnDisk, PlanWriter},
    journal::{Journal, Recovered},
    metrics::Meter,
    metrics::user_metrics::UserMetrics,
    reload::{options::Options, previews::Previews},
    trace,
    view::Facts,
};
use mainstay_core::{
    name::Name,
    node::{Held, Input},
    plan::{Listeners, Plan},
    record::Memory,
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
    #[error("the loop ended before it began")]
    Ended(End),
}

/// Everything up to the point where the node runs and the keeper knows it.
///
/// # Errors
/// The keeper or the configuration cannot be understood.
pub async fn boot(
    mut link: Link,
    options: &Options,
    crash: Crash,
) -> Result<(Agent, Handle), BootError> {
    let welcome = greet(&mut link).await?;
    let (journal, mut recovered) = Journal::recover(&options.dirs.run, &welcome.run)
        .unwrap_or_else(|| {
            (Journal::create(&options.dirs.run, &welcome.run), Recovered::default())
        });
    let written = plan_file::read(&options.dirs.run, &welcome.run);
    let plan_on_disk = match (recovered.memory.has_plan(), &written) {
        (false, Some(_)) => OnDisk::Current,
        (true, _) | (false, None) => OnDisk::Behind,
    };
    let (plan, plan_on_disk) = match recovered.memory.plan_in_force(written) {
        Some(plan) => (plan, plan_on_disk),
        None => apply(&welcome, options, &recovered.memory)?,
    };
    trace::set_level(&plan.node.log_level);
    let Recovered { mut memory, events, taken, upgrade, .. } = recovered;
    // A job that was never touched in this run is in no journal.
    memory.disable(disabled::read(&options.dirs.state));
    // Nothing becomes visible before it is journaled, so without a record nothing has begun.
    let first = !memory.has_begun() && welcome.jobs.is_empty() && welcome.records.is_empty();
    let node = memory.restore(plan);
    let event_log = EventLog::new(welcome.run.clone(), events);
    let (api, api_plan) = watch::channel(node.plan().api.clone());
    let dirs = Dirs { run: welcome.run_dir.clone(), state: welcome.state_dir.clone() };
    let user_metrics = UserMetrics::open(&options.dirs.run, &welcome.run, node.plan());
    user_metrics.keep_written();
    let (listeners, listeners_now) = watch::channel(Listeners::of(node.plan()));
    let shared = Shared {
        dirs,
        api: api_plan,
        user_metrics: user_metrics.clone(),
        listeners: listeners_now,
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
        timers: Timers::default(),
        outgoing: Outgoing::new(),
        previews: Previews::new(),
        checks: Checks::new(),
        crons: Crons::default(),
        disabled: Disabled::start(&options.dirs.state),
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
        over: None,
        last_awake: 0,
    };
    agent.look_for_addresses();
    agent.begin(welcome, first).map_err(BootError::Ended)?;
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

/// Applies the configuration: this run has no plan yet, or it is lost.
fn apply(
    welcome: &Welcome,
    options: &Options,
    memory: &Memory,
) -> Result<(Plan, OnDisk), BootError> {
    if memory.has_begun() || !welcome.jobs.is_empty() {
        tracing::warn!(
            "the applied plan is neither in plan.json nor in the journal: going on with the \
             configuration as it is now"
        );
    }
    let loaded = options.load(memory.environ())?;
    if !loaded.warnings.is_empty() {
        eprintln!("{}", loaded.warnings.trim_end());
    }
    let plan = loaded.plan;
    let written = plan_file::write(&options.dirs.run, &welcome.state_dir, &welcome.run, &plan);
    Ok((plan, OnDisk::Behind.after(written, &options.dirs.run)))
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
    let HeldJob { job, highest, live, open } = job;
    let recorded = |record: &ExitRecord| record.incarnation == highest && record.job == job;
    let pending = live.is_some() || records.iter().any(recorded);
    let live = live.filter(|live| live.spawned).map(|live| (live.incarnation, live.pid));
    Held { job, highest, live, pending, open }
}

impl Agent {
    fn begin(&mut self, welcome: Welcome, first: bool) -> Result<(), End> {
        let held_now = welcome.jobs.clone();
        let notifications = welcome.jobs.iter().filter_map(notification).collect::<Vec<_>>();
        let input = match first {
            true => Input::Boot,
            false => Input::Attached {
                held: welcome.jobs.into_iter().map(|job| held(job, &welcome.records)).collect(),
                agent_restarts: welcome.agent_restarts,
                upgraded: self.untold(welcome.upgraded),
            },
        };
        self.open_discovery();
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
