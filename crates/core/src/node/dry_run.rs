//! A copy of a node in a small world in which all goes well: what is told to stop ends, what is
//! started comes up and is healthy, what runs on behalf of an end ends as expected. Nothing else
//! happens there, and time passes only where somebody waits for it.

use super::{Command, Input, Node, NodePhase, Refusal, Token, Wait};
use crate::{
    clock::{Mono, Now},
    exit::{Asked, Exit},
    job::{Job, Phase},
    name::Name,
    plan::Check,
    signal::Signal,
    task::TaskOutcome,
};
use std::collections::{BTreeMap, VecDeque};

/// So many things happen to each job at most; jobs that set each other going could go on for ever.
const STEPS: usize = 12;
/// So often a check passes before its `rise` is taken for granted.
const PASSES: u32 = 64;

/// The copy, and the world that answers it.
pub(super) struct DryRun {
    pub(super) node: Node,
    now: Now,
    inputs: VecDeque<Input>,
    /// Until when a stop waits for what may never end.
    patience: BTreeMap<Name, (Mono, u64)>,
    left: usize,
}

impl DryRun {
    pub(super) fn new(node: Node, now: Now) -> DryRun {
        let left = node.jobs.len().saturating_add(1).saturating_mul(STEPS);
        DryRun { node, now, inputs: VecDeque::new(), patience: BTreeMap::new(), left }
    }

    /// One input, and what the world answers to its commands.
    pub(super) fn take(&mut self, input: Input) -> Result<(), Refusal> {
        let outcome = self.node.step(self.now, input);
        for command in outcome.commands {
            self.answer(command);
        }
        outcome.answer.unwrap_or(Ok(()))
    }

    /// Until nothing happens any more, or the node ends.
    pub(super) fn play(&mut self) {
        while let Some(input) = self.inputs.pop_front().or_else(|| self.lose_patience()) {
            if self.left == 0 || self.node.phase() == NodePhase::Stopping {
                return;
            }
            self.left -= 1;
            self.pass_time(&input);
            // What is no request is not refused.
            let _ = self.take(input);
        }
    }

    fn answer(&mut self, command: Command) {
        match command {
            Command::Spawn { job, incarnation, .. } => self.come_up(job, incarnation),
            Command::Stop { job, incarnation, .. } | Command::Kill { job, incarnation } => {
                let exit = Exit::Signal { signal: Signal::TERM, oom: false };
                let (usage, asked) = (None, Asked::Stop);
                self.inputs.push_back(Input::Exited { job, incarnation, exit, usage, asked });
            }
            Command::RunTask { id, .. } => {
                let exit = Exit::Code { code: 0 };
                let outcome = TaskOutcome { exit, output: String::new(), truncated: false };
                self.inputs.push_back(Input::TaskDone { id, outcome });
            }
            Command::SetTimer {
                token: Token::Job { job, incarnation, wait: Wait::StopTimeout },
                at,
            } => {
                self.patience.insert(job, (at, incarnation));
            }
            Command::Withdraw { job } => self.inputs.push_back(Input::Withdrawn { job }),
            Command::Signal { .. }
            | Command::Announce { .. }
            | Command::Probe { .. }
            | Command::ArmCron { .. }
            | Command::Rest { .. }
            | Command::Forget { .. }
            | Command::Applied
            | Command::WriteInstances { .. }
            | Command::Remember { .. }
            | Command::SetTimer { .. }
            | Command::Exit { .. } => {}
        }
    }

    /// Nothing happens by itself any more: a stop that waits for its hooks, and a launch that does,
    /// go on without them.
    fn lose_patience(&mut self) -> Option<Input> {
        let waits = |job: &Name| {
            self.node
                .job(job.as_str())
                .is_some_and(|it| it.waits_for_hooks() || (it.waits() && it.gives_time_to_hooks()))
        };
        self.patience.retain(|job, _| waits(job));
        let (job, (at, incarnation)) = self.patience.pop_first()?;
        self.now.mono = self.now.mono.max(at);
        let token = Token::Job { job, incarnation, wait: Wait::StopTimeout };
        Some(Input::Timer { token })
    }

    fn come_up(&mut self, name: Name, incarnation: u64) {
        let job = || name.clone();
        let pid = u32::MAX;
        self.inputs.push_back(Input::Spawned { job: job(), incarnation, pid });
        if self.node.job(name.as_str()).is_some_and(Job::is_hook_run) {
            let (exit, usage, asked) = (Exit::Code { code: 0 }, None, Asked::None);
            self.inputs.push_back(Input::Exited { job: job(), incarnation, exit, usage, asked });
            return;
        }
        let Some(plan) = self.node.job_plan(name.as_str()) else { return };
        if !plan.start_seconds.is_zero() {
            let token = Token::Job { job: job(), incarnation, wait: Wait::Started };
            self.inputs.push_back(Input::Timer { token });
        }
        for (check, plan) in plan.checks.iter().enumerate() {
            let output = String::new();
            let pass = Input::Checked { job: job(), incarnation, check, passed: true, output };
            let often = if plan.is_told() { 0 } else { plan.rise.min(PASSES) };
            self.inputs.extend((0..often).map(|_| pass.clone()));
        }
        if plan.checks.iter().any(Check::is_told) {
            let (ready, watchdog, watchdog_every) = (true, false, None);
            let job = job();
            let told = Input::Notified { job, incarnation, ready, watchdog, watchdog_every };
            self.inputs.push_back(told);
        }
    }

    /// `start_seconds` are over when their timer says so.
    fn pass_time(&mut self, input: &Input) {
        if let Input::Timer { token: Token::Job { job, wait: Wait::Started, .. } } = input
            && let Some(plan) = self.node.job_plan(job.as_str())
        {
            self.now.mono = self.now.mono.after(plan.start_seconds);
        }
    }

    /// Stops of these jobs that had begun before come to their end.
    pub(super) fn finish_stops<'a>(&mut self, jobs: impl Iterator<Item = &'a Name>) {
        for job in jobs {
            let Some(state) = self.node.job(job.as_str()) else { continue };
            if state.phase() == Phase::Stopping {
                let (job, incarnation) = (job.clone(), state.incarnation());
                self.answer(Command::Kill { job, incarnation });
            }
        }
    }
}
