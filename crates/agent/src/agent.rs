//! The loop: takes one input at a time through step, journal, publication, acknowledgement and
//! commands, in this order and without waiting anywhere.

use crate::{
    boot::Beginning,
    checks::Checks,
    clock,
    crash::{Crash, Crashed, Point},
    discovery::Discovery,
    effects::archive::Archive,
    effects::disabled::DisabledFile,
    effects::give_back::GiveBack,
    effects::outgoing::{LookedUp, Outgoing},
    effects::pending_acks::PendingAcks,
    effects::pushed_settings::PushedSettings,
    effects::watch_files::WatchFiles,
    event_log::EventLog,
    fleet::{self, FleetRoom},
    handle::Call,
    inputs::Replies,
    inputs::cron::{Clocks, Crons},
    inputs::link::{Link, LinkError},
    inputs::seen_tokens::SeenTokens,
    inputs::timers::Timers,
    journal::plan_file::{OnDisk, PlanWriter},
    journal::snapshot::{Moment, PlanPlace, Snapshot},
    journal::{Change, Journal, RETRY},
    metrics::Meter,
    metrics::user_metrics::UserMetrics,
    reload::previews::Previews,
    rollout::{RolloutRoom, RolloutSlot},
    trace::{self, EndCause},
    view::Facts,
};
use mainstay_core::{
    event::{Event, Kind},
    job::Job,
    name::Name,
    node::{Command, Input, Node, Outcome, Refusal},
    plan::{ApiPlan, Listeners},
    record::Record,
};
use mainstay_pool::COMPUTE;
use mainstay_wire::{
    api::Accepted,
    link::{Figures, NodeSummary, ToKeeper},
    task::TaskKey,
};
use std::{
    collections::{BTreeMap, VecDeque},
    io, iter,
    path::PathBuf,
    sync::Arc,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};

/// The run that this agent belongs to.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) run: String,
    pub(crate) run_dir: PathBuf,
    pub(crate) state_dir: PathBuf,
    pub(crate) agent_restarts: u64,
}

pub struct Agent {
    pub(crate) about: About,
    pub(crate) node: Node,
    pub(crate) journal: Journal,
    pub(crate) event_log: Arc<EventLog>,
    pub(crate) link: Link,
    pub(crate) calls: mpsc::Receiver<Call>,
    /// Tells the API where to listen.
    pub(crate) api: watch::Sender<ApiPlan>,
    pub(crate) crash: Crash,
    pub(crate) archive: Archive,
    pub(crate) facts: BTreeMap<Name, Facts>,
    pub(crate) seen_tokens: SeenTokens,
    /// The last upgrade that was told.
    pub(crate) upgrade: u64,
    /// What the keeper remembers of the node.
    pub(crate) told: Option<NodeSummary>,
    pub(crate) timers: Timers,
    pub(crate) outgoing: Outgoing,
    pub(crate) previews: Previews,
    pub(crate) checks: Checks,
    pub(crate) crons: Crons,
    pub(crate) disabled: DisabledFile,
    pub(crate) discovery: Discovery,
    pub(crate) watch_files: WatchFiles,
    /// Inputs that this agent has made itself.
    pub(crate) own: VecDeque<Input>,
    pub(crate) inspections: Replies<Figures>,
    pub(crate) upgrades: Replies<String>,
    pub(crate) plan_on_disk: OnDisk,
    pub(crate) plan_writer: PlanWriter,
    /// When to try again to write what could not be written.
    pub(crate) retry_at: Instant,
    pub(crate) pending_acks: PendingAcks,
    pub(crate) pushed_settings: PushedSettings,
    pub(crate) meter: Meter,
    /// Of jobs that others are told of.
    pub(crate) addresses: Vec<(Name, String)>,
    /// The host may still get one that fits.
    pub(crate) address_missing: bool,
    pub(crate) user_metrics: Arc<UserMetrics>,
    pub(crate) listeners: watch::Sender<Listeners>,
    pub(crate) give_back: GiveBack,
    /// The node's part in its fleet, if it has one.
    pub(crate) fleet: Option<FleetRoom>,
    /// Something has changed here that the fleet may have to know.
    pub(crate) fleet_is_behind: bool,
    pub(crate) rollout: RolloutSlot,
    /// The node has said that everything is over.
    pub(crate) over: Option<Over>,
    /// When it last had nothing to do: CLOCK_BOOTTIME, ns.
    pub(crate) last_awake: u64,
    /// Until its first decision.
    pub(crate) beginning: Option<Beginning>,
}

/// Why the loop has ended.
#[derive(Debug)]
pub enum End {
    /// Everything is gone.
    Over(Over),
    /// The keeper is dead or cannot be understood.
    Link(LinkError),
    /// A test wanted it.
    Crashed(Crashed),
}

/// What is to become of a run in which everything is gone.
#[derive(Debug, Clone, Copy)]
pub struct Over {
    pub code: i32,
    /// Another run is to begin in its place.
    pub again: bool,
}

impl From<LinkError> for End {
    fn from(error: LinkError) -> End {
        End::Link(error)
    }
}

impl From<Crashed> for End {
    fn from(crashed: Crashed) -> End {
        End::Crashed(crashed)
    }
}

/// Whom to tell that an input was taken.
pub(crate) enum Origin {
    /// Nobody.
    World,
    /// Nobody either: it is how the keeper welcomes an agent.
    Welcome,
    /// The keeper, which keeps the record until then.
    Record(u64),
    /// The keeper, which acts by itself otherwise.
    Token(u64),
    /// The keeper, which keeps what came of the task until then.
    Task(TaskKey),
    /// The API.
    Caller(oneshot::Sender<Result<Accepted, Refusal>>),
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("about", &self.about).finish_non_exhaustive()
    }
}

impl Agent {
    /// Runs until the run or the keeper ends.
    pub async fn run(&mut self) -> End {
        loop {
            if let Some(over) = self.over
                && !self.rollout_finishes()
            {
                return End::Over(over);
            }
            self.last_awake = mainstay_sys::clock::boottime();
            if let Err(end) = self.run_once().await {
                return end;
            }
            // Clients are served, however much the keeper has to say.
            tokio::task::yield_now().await;
        }
    }

    /// When it last had nothing to do, with its keeper alive: CLOCK_BOOTTIME, ns.
    pub(crate) fn last_awake(&self) -> u64 {
        self.last_awake
    }

    /// There was an agent before this one, and those who listened to it may come back.
    #[must_use]
    pub fn is_successor(&self) -> bool {
        self.about.agent_restarts > 0 || self.upgrade > 0
    }

    /// Returns when others know of every job that is no longer there.
    pub(crate) async fn withdrawn(&mut self) {
        self.discovery.withdrawals_done().await;
    }

    /// Returns when the other nodes of the fleet know that this one goes.
    pub(crate) async fn left_fleet(&mut self) {
        if let Some(room) = &mut self.fleet {
            room.leave().await;
        }
    }

    /// The node, as the keeper is to remember it.
    pub(crate) fn summary(&self) -> NodeSummary {
        let (seq, phase) = (self.node.seq(), self.node.phase());
        let held_until = self.rollout.room().and_then(RolloutRoom::held_until);
        NodeSummary { seq, phase, again: self.node.begins_anew(), held_until }
    }

    /// The link, for what is left to say once the loop has ended.
    #[must_use]
    pub fn into_link(self) -> Link {
        self.link
    }

    async fn run_once(&mut self) -> Result<(), End> {
        tokio::select! {
            message = self.link.receive() => self.on_message(message?),
            Some(call) = self.calls.recv() => self.on_call(call),
            () = self.timers.due() => self.wake(),
            found = self.outgoing.looked_up() => self.proceed(found),
            previewed = self.previews.finished() => self.apply(previewed),
            written = self.plan_writer.finished() => self.plan_written(written),
            snapshot = self.journal.snapshot_written() => self.adopt_snapshot(snapshot),
            progress = self.disabled.progress() => self.go_on_keeping(progress),
            heard = self.discovery.next_input() => self.take(heard, Origin::World),
            checked = self.checks.answered() => self.take_checked(checked),
            () = self.crons.due() => self.fire_crons(),
            () = self.give_back.due() => self.give_back(),
            wake = fleet::next_wake(&mut self.fleet) => self.on_fleet(wake),
            wake = self.rollout.next_wake() => self.on_rollout(wake),
            () = sleep_until(self.retry_at), if self.has_unwritten() => self.write_again(),
        }
    }

    fn take_checked(&mut self, mut checked: Input) -> Result<(), End> {
        if let Input::Checked { job, output, .. } = &mut checked {
            *output = self.hide(job, std::mem::take(output));
        }
        self.take(checked, Origin::World)
    }

    fn adopt_snapshot(&mut self, written: io::Result<Snapshot>) -> Result<(), End> {
        let begun = Instant::now();
        self.journal.adopt(written);
        self.meter.busy(begun.elapsed());
        Ok(())
    }

    fn has_unwritten(&self) -> bool {
        self.journal.has_failed() || self.plan_on_disk != OnDisk::Current
    }

    fn write_again(&mut self) -> Result<(), End> {
        self.retry_at = Instant::now() + RETRY;
        self.write_plan();
        // It was said that it cannot be written.
        let _ = self.retry_journal();
        self.journal.retry_room();
        self.acknowledge_pending();
        Ok(self.link.flush()?)
    }

    fn retry_journal(&mut self) -> io::Result<()> {
        if !self.journal.has_failed() {
            return Ok(());
        }
        let plan = match self.plan_on_disk {
            OnDisk::Current => PlanPlace::File,
            OnDisk::Behind | OnDisk::Failed => PlanPlace::Journal,
        };
        let events = self.event_log.all();
        let moment = Moment::of(&self.node, plan, events, &self.seen_tokens, self.upgrade);
        self.journal.retry(&moment)
    }

    /// Takes a request whose answer is a promise: only if the journal has it.
    fn take_promise(&mut self, input: Input, origin: Origin) -> Result<(), End> {
        if let Err(error) = self.retry_journal() {
            origin.answer(Some(Err(not_kept(&error))), Accepted::default());
            return Ok(());
        }
        let before = self.node.clone();
        match self.decide(input, &origin) {
            (decided, Ok(())) => {
                let carried_out = self.carry_out(decided, origin);
                // A plan of many jobs may go with it. Without a thread it goes here.
                let _ = COMPUTE.begin(move || drop(before));
                carried_out
            }
            (_, Err(error)) => {
                self.node = before;
                origin.answer(Some(Err(not_kept(&error))), Accepted::default());
                Ok(())
            }
        }
    }

    fn wake(&mut self) -> Result<(), End> {
        while let Some((token, late)) = self.timers.take_due(clock::mono()) {
            self.meter.late(late);
            self.take(Input::Timer { token }, Origin::World)?;
        }
        Ok(())
    }

    fn fire_crons(&mut self) -> Result<(), End> {
        for job in self.crons.take_due(Clocks::now()) {
            self.take(Input::CronDue { job }, Origin::World)?;
        }
        Ok(())
    }

    fn proceed(&mut self, found: LookedUp) -> Result<(), End> {
        self.own.extend(self.outgoing.proceed(&mut self.link, found));
        self.link.flush()?;
        self.take_own()
    }

    /// One input, and whatever this agent has to add to it itself.
    pub(crate) fn take(&mut self, input: Input, origin: Origin) -> Result<(), End> {
        self.step(input, origin)?;
        self.take_own()?;
        self.tell_rollout()?;
        self.tell_fleet()
    }

    /// One input that nobody has to be told of: what the fleet has to know it is told later.
    pub(crate) fn take_alone(&mut self, input: Input) -> Result<(), End> {
        self.take_alone_then(input, Origin::World, |_| ())
    }

    /// As [`Agent::take_alone`]; `then` comes before whatever the input has led to by itself.
    pub(crate) fn take_alone_then(
        &mut self,
        input: Input,
        origin: Origin,
        then: impl FnOnce(&mut Agent),
    ) -> Result<(), End> {
        self.step(input, origin)?;
        then(self);
        self.take_own()
    }

    fn take_own(&mut self) -> Result<(), End> {
        while let Some(input) = self.own.pop_front() {
            self.step(input, Origin::World)?;
        }
        Ok(())
    }

    fn step(&mut self, input: Input, origin: Origin) -> Result<(), End> {
        self.give_back.disturb(Instant::now());
        self.crash.at(Point::Input)?;
        if let Input::Request(request) = &input
            && request.is_promise()
        {
            return self.take_promise(input, origin);
        }
        // What could not be written is said by the journal, and the node goes on.
        let (decided, _) = self.decide(input, &origin);
        self.carry_out(decided, origin)
    }

    /// The step itself, and its place in the journal.
    fn decide(&mut self, input: Input, origin: &Origin) -> (Decided, io::Result<()>) {
        let begun = Instant::now();
        let before = self.incarnation_before(&input);
        self.track_checks(&input);
        let cause = self.end_cause(&input);
        let outcome = self.node.step(clock::now(), input);
        self.fleet_is_behind |= self.fleet.is_some() && outcome.concerns_fleet();
        let written = self.write_down(&outcome, origin);
        (Decided { begun, before, cause, outcome }, written)
    }

    /// What follows from a step, now that it is in the journal.
    fn carry_out(&mut self, decided: Decided, origin: Origin) -> Result<(), End> {
        self.crash.at(Point::Journaled)?;
        let Decided { begun, before, cause, outcome } = decided;
        let replanned = outcome.changes_plan();
        let Outcome { events, commands, answer, .. } = outcome;
        let task = commands.iter().find_map(|command| match command {
            Command::RunTask { id, .. } => Some(id.number),
            _ => None,
        });
        let to_tell = events.clone();
        self.rollout_hears(&events);
        self.meter.events(&events);
        // Before the record of an end is given up, whose word would count otherwise.
        let (remembered, commands): (Vec<Command>, Vec<Command>) =
            commands.into_iter().partition(|command| matches!(command, Command::Remember { .. }));
        remembered.into_iter().for_each(|command| self.perform(command, replanned));
        self.tell_progress();
        self.event_log.publish(events);
        self.crash.at(Point::Published)?;
        self.acknowledge(&origin)?;
        self.crash.at(Point::Acknowledged)?;
        for command in commands {
            self.perform(command, replanned);
        }
        self.link.flush()?;
        self.meter.stepped(begun.elapsed());
        // Nobody waits for a line of the log.
        for event in &to_tell {
            trace::event(event, cause, self.is_early(event));
        }
        self.meter.busy(begun.elapsed());
        self.crash.at(Point::Commanded)?;
        // Last of all: whoever hears that it was taken can rely on the keeper having it.
        origin.answer(answer, Accepted { before, task });
        Ok(())
    }

    /// It is about a check that has not passed in this run of its job, and may still be starting.
    fn is_early(&self, event: &Event) -> bool {
        let Kind::Check { name, passing: false, .. } = &event.kind else { return false };
        let source = event.source.as_str();
        let (Some(plan), Some(job)) = (self.node.job_plan(source), self.node.job(source)) else {
            return false;
        };
        let mut checks = plan.checks.iter().zip(job.checks());
        checks.any(|(check, state)| {
            check.name == *name && !state.has_passed() && check.start_period.is_zero()
        })
    }

    /// Why a run has ended, if that is what the input says.
    fn end_cause(&self, input: &Input) -> EndCause {
        let Input::Exited { job, incarnation, .. } = input else { return EndCause::Own };
        let overran = |job: &Job| job.overran() && job.incarnation() == *incarnation;
        match self.node.job(job.as_str()).is_some_and(overran) {
            true => EndCause::Overran,
            false => EndCause::Own,
        }
    }

    fn incarnation_before(&self, input: &Input) -> u64 {
        let Input::Request(request) = input else { return 0 };
        let job = request.job().and_then(|job| self.node.job(job.as_str()));
        job.map_or(0, Job::incarnation)
    }

    /// Keeps count of what checks are under way.
    fn track_checks(&mut self, input: &Input) {
        match input {
            Input::Checked { job, incarnation, check, passed, .. } => {
                let took = self.checks.finished(job, *incarnation, *check);
                let plan = self.node.job_plan(job.as_str());
                if let Some(check) = plan.and_then(|plan| plan.checks.get(*check)) {
                    self.meter.checked(job, &check.name, *passed, took);
                }
            }
            Input::Exited { job, incarnation, .. } => {
                let checks = self.node.job_plan(job.as_str()).map_or(0, |job| job.checks.len());
                self.checks.cancel(job, checks, *incarnation);
            }
            _ => {}
        }
    }

    fn write_down(&mut self, outcome: &Outcome, origin: &Origin) -> io::Result<()> {
        let behind = self.plan_on_disk != OnDisk::Current;
        let (mut taken, mut upgrade, mut plan) = (None, None, None);
        match origin {
            Origin::Token(token) => taken = Some(*token),
            Origin::Welcome => {
                upgrade = Some(self.upgrade);
                plan = behind.then(|| self.node.plan_record());
            }
            Origin::World | Origin::Record(_) | Origin::Task(_) | Origin::Caller(_) => {}
        }
        taken.into_iter().for_each(|token| self.seen_tokens.add(token));
        let Outcome { events, records, .. } = outcome;
        if events.is_empty() && records.is_empty() && taken.is_none() {
            return Ok(());
        }
        let with_plan: Vec<Record>;
        let records = match plan {
            None => records,
            Some(plan) => {
                with_plan = iter::once(plan).chain(records.iter().cloned()).collect();
                &with_plan
            }
        };
        let (node, event_log, all_taken, told) =
            (&self.node, &self.event_log, &self.seen_tokens, self.upgrade);
        let change = Change { events, records, taken, upgrade };
        let plan = match (outcome.changes_plan(), behind) {
            (true, _) => PlanPlace::JournalOnly,
            (false, true) => PlanPlace::Journal,
            (false, false) => PlanPlace::File,
        };
        self.journal.append(&change, || {
            let mut all = event_log.all();
            all.extend(events.iter().cloned().map(Arc::new));
            Moment::of(node, plan, all, all_taken, told)
        })
    }

    fn acknowledge(&mut self, origin: &Origin) -> Result<(), End> {
        self.acknowledge_pending();
        match origin {
            Origin::Record(record) => self.acknowledge_journaled(ToKeeper::Ack { record: *record }),
            // In our hands, journal or not: the keeper would stop the whole node by itself.
            Origin::Token(token) => self.say(&ToKeeper::Taken { token: *token }),
            Origin::Task(id) => {
                let thanks = ToKeeper::TaskTaken { id: id.clone() };
                match id.is_journaled() {
                    true => self.acknowledge_journaled(thanks),
                    // A check: it is asked again, and nobody misses what came of this one.
                    false => self.say(&thanks),
                }
            }
            Origin::World | Origin::Welcome | Origin::Caller(_) => {}
        }
        Ok(self.link.flush()?)
    }

    /// What is not in the journal is the keeper's to keep.
    fn acknowledge_journaled(&mut self, thanks: ToKeeper) {
        match self.journal.has_failed() {
            true => self.pending_acks.add(thanks),
            false => self.say(&thanks),
        }
    }

    fn acknowledge_pending(&mut self) {
        if !self.journal.has_failed() {
            self.pending_acks.take().iter().for_each(|thanks| self.say(thanks));
        }
    }

    /// The keeper knows the number of an event before anybody else hears of it: should the journal be
    /// lost, no other gets it.
    pub(crate) fn tell_progress(&mut self) {
        let told = self.summary();
        if self.told != Some(told) {
            self.told = Some(told);
            self.say(&ToKeeper::Told(told));
        }
    }

    /// Puts a short message in line.
    pub(crate) fn say(&mut self, message: &ToKeeper) {
        self.link.push(message).expect("a message without free text fits a frame");
    }
}

/// A step, on its way from the journal to what follows from it.
struct Decided {
    begun: Instant,
    /// The incarnation that the job had before.
    before: u64,
    cause: EndCause,
    outcome: Outcome,
}

fn not_kept(error: &io::Error) -> Refusal {
    Refusal::NotKept(format!("cannot write the journal: {error}"))
}

impl Origin {
    /// Answers whoever asked.
    fn answer(self, answer: Option<Result<(), Refusal>>, accepted: Accepted) {
        match self {
            Origin::Caller(caller) => {
                let answer = answer.unwrap_or(Ok(())).map(|()| accepted);
                // Nobody is left only when the client went away.
                let _ = caller.send(answer);
            }
            Origin::World
            | Origin::Welcome
            | Origin::Record(_)
            | Origin::Token(_)
            | Origin::Task(_) => {
                if let Some(Err(refusal)) = answer {
                    tracing::info!("not done: {refusal}");
                }
            }
        }
    }
}
