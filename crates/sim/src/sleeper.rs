//! A machine that sleeps: a node on its clocks, of which only some go on meanwhile.
//!
//! | clock | what it is for | while the machine sleeps |
//! |---|---|---|
//! | monotonic | every wait that the node asks for | stands still |
//! | boottime | leases, which the keeper enforces | goes on |
//! | wall | cron, time stamps | goes on |

use mainstay_core::{
    clock::{Mono, Now},
    event::Event,
    exit::{Asked, Exit},
    name::Name,
    node::{Command, Input, Node, Token},
    plan::Plan,
    signal::Signal,
};
use std::{collections::BTreeMap, time::Duration};

/// What the waits of the node are measured with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitClock {
    Monotonic,
    /// As it must not be: what came due during sleep happens on waking.
    Boottime,
}

#[derive(Debug)]
pub struct Sleeper {
    pub node: Node,
    wait_clock: WaitClock,
    mono: Duration,
    /// How long it has slept in all.
    slept: Duration,
    timers: BTreeMap<Token, Mono>,
    /// By the wall clock.
    crons: BTreeMap<Name, Duration>,
    cron_every: Duration,
    /// Leases of incarnations, by boottime.
    leases: BTreeMap<Name, (u64, Duration)>,
    pub events: Vec<Event>,
    pub commands: Vec<Command>,
}

impl Sleeper {
    /// Every cron expression is taken to mean this.
    #[must_use]
    pub fn new(plan: Plan, wait_clock: WaitClock, cron_every: Duration) -> Sleeper {
        let mut sleeper = Sleeper {
            node: Node::new(plan),
            wait_clock,
            mono: Duration::from_secs(1000),
            slept: Duration::ZERO,
            timers: BTreeMap::new(),
            crons: BTreeMap::new(),
            cron_every,
            leases: BTreeMap::new(),
            events: Vec::new(),
            commands: Vec::new(),
        };
        sleeper.tell(Input::Boot);
        sleeper
    }

    /// Boottime and wall clock, which began together.
    fn boottime(&self) -> Duration {
        self.mono + self.slept
    }

    fn now(&self) -> Now {
        let measured = match self.wait_clock {
            WaitClock::Monotonic => self.mono,
            WaitClock::Boottime => self.boottime(),
        };
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let wall = i64::try_from(nanoseconds(self.boottime())).unwrap_or(i64::MAX);
        Now { mono: Mono(nanoseconds(measured)), wall }
    }

    pub fn tell(&mut self, input: Input) {
        let now = self.now();
        let outcome = self.node.step(now, input);
        self.events.extend(outcome.events);
        for command in outcome.commands {
            match &command {
                Command::SetTimer { token, at } => drop(self.timers.insert(token.clone(), *at)),
                Command::ArmCron { job } => {
                    let at = self.boottime() + self.cron_every;
                    self.crons.insert(job.clone(), at);
                }
                _ => {}
            }
            self.commands.push(command);
        }
    }

    /// The keeper kills this incarnation when so much time has passed, asleep or awake.
    pub fn lease(&mut self, job: &Name, incarnation: u64, time: Duration) {
        self.leases.insert(job.clone(), (incarnation, self.boottime() + time));
    }

    /// The machine sleeps; on waking, what is due is done.
    pub fn sleep(&mut self, time: Duration) {
        self.slept += time;
        self.do_what_is_due();
    }

    /// The machine is awake for so long, second by second.
    pub fn live(&mut self, time: Duration) {
        for _ in 0..time.as_secs() {
            self.mono += Duration::from_secs(1);
            self.do_what_is_due();
        }
    }

    fn do_what_is_due(&mut self) {
        let boottime = self.boottime();
        while let Some(input) = self.next_due(boottime) {
            self.tell(input);
        }
    }

    fn next_due(&mut self, boottime: Duration) -> Option<Input> {
        let over = self.leases.iter().find(|(_, (_, at))| *at <= boottime);
        if let Some((job, incarnation)) = over.map(|(job, (it, _))| (job.clone(), *it)) {
            self.leases.remove(&job);
            let exit = Exit::Signal { signal: Signal::KILL, oom: false };
            let (usage, asked) = (None, Asked::None);
            return Some(Input::Exited { job, incarnation, exit, usage, asked });
        }
        let due = self.crons.iter().find(|(_, at)| **at <= boottime);
        if let Some(job) = due.map(|(job, _)| job.clone()) {
            self.crons.remove(&job);
            return Some(Input::CronDue { job });
        }
        let now = self.now().mono;
        let due = self.timers.iter().filter(|(_, at)| **at <= now).min_by_key(|(_, at)| **at);
        let token = due.map(|(token, _)| token.clone())?;
        self.timers.remove(&token);
        Some(Input::Timer { token })
    }
}
