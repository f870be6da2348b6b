//! The end of a node: why it comes, how long it takes, and with which code.
//!
//! It comes when somebody asks (a request, SIGTERM, SIGINT, SIGQUIT, SIGRTMIN+3), or by the plan's
//! rule: `main` when a main job has ended for good, `any` when some job has, `all` when every job
//! has, and none of them because a user stopped it (such a job may be started again); `any-failure`
//! is `all`, or when some job has failed. One with `exit_on_failure` ends the node with its failure
//! under all of them. Who waits for bad news that can no longer come was not needed, and is not
//! asked. Under all also when nothing can progress any more, or a main job can never start: then the
//! code is 70. A job that an update of the rollout tells ends nothing before that update, or its way
//! back, is over: it may be brought up again.
//!
//! There is one deadline for the whole; the order is in `order`. A second signal, or the deadline,
//! kills what is left. A request may be repeated: who does not know whether it was taken asks
//! again, and is not impatient. Hooks that wait for an end may still run; nothing else is launched.
//! When no process is left the run exits: with the code of the first main job whose process ended
//! in or before the shutdown, else with what the rule says, else 0. A node always ends: what is not
//! known to be gone a little after it was killed is left to the keeper, which kills what there is.

use super::{
    Command, Input, JobId, Node, StuckJob, Token,
    blockers::Startable,
    state::{NodeStage, NodeState, Shutdown, Why},
};
use crate::{
    app::RestReason,
    event::Outbox,
    exit::Exit,
    job::{Desired, Force, Job, JobInput, Phase, is_triggered},
    plan::{ExitRule, JobPlan},
    record::Journaled,
};
use std::time::Duration;

/// Nothing can progress any more.
const STUCK: i32 = 70;
/// What was killed is gone by then.
const GRACE: Duration = Duration::from_secs(1);

impl Node {
    pub(super) fn shut_down_asked(&mut self, out: &mut Outbox) {
        match &self.state.stage {
            NodeStage::Starting | NodeStage::Running => self.shut_down(out, Why::Asked),
            NodeStage::Stopping(_) => self.end_for_good(),
        }
    }

    /// The same, and another run follows, unless somebody wants the node to end.
    pub(super) fn begin_anew_asked(&mut self, out: &mut Outbox) {
        match &self.state.stage {
            NodeStage::Starting | NodeStage::Running => self.shut_down(out, Why::BeginsAnew),
            NodeStage::Stopping(_) => {}
        }
    }

    /// The rollout has failed for good.
    pub(super) fn shut_down_failed(&mut self, out: &mut Outbox) {
        match &self.state.stage {
            NodeStage::Starting | NodeStage::Running => {
                self.shut_down(out, Why::Ended { code: 1 });
            }
            NodeStage::Stopping(_) => {}
        }
    }

    /// Another run is to follow this one, which has begun to end.
    #[must_use]
    pub fn begins_anew(&self) -> bool {
        match &self.state.stage {
            NodeStage::Starting | NodeStage::Running => false,
            NodeStage::Stopping(shutdown) => shutdown.again,
        }
    }

    fn end_for_good(&mut self) {
        if self.begins_anew()
            && let NodeStage::Stopping(shutdown) = &mut self.state.edit().stage
        {
            shutdown.again = false;
        }
    }

    pub(super) fn shut_down_signalled(&mut self, out: &mut Outbox) {
        self.end_for_good();
        match &mut self.state.edit().stage {
            NodeStage::Starting | NodeStage::Running => self.shut_down(out, Why::Signalled),
            NodeStage::Stopping(shutdown) if !shutdown.signalled => shutdown.signalled = true,
            NodeStage::Stopping(_) => self.kill_all(out),
        }
    }

    fn shut_down(&mut self, out: &mut Outbox, why: Why) {
        let (time, processes) =
            (self.jobs.plan().node.stop_timeout, self.jobs.census().processes());
        let shutdown = Shutdown::new(out.now.mono, time, processes, why);
        let at = shutdown.deadline;
        self.state.edit().stage = NodeStage::Stopping(shutdown);
        out.command(Command::SetTimer { token: Token::ShutdownDeadline, at });
        self.release_all();
        for id in self.jobs.ids() {
            if !self.is_left_alone(id) {
                self.step_job(out, id, JobInput::Stop(Force::Grace));
            }
        }
        self.keep_hooks(out);
        self.go_on_stopping(out);
        for id in self.jobs.ids() {
            self.step_job(out, id, JobInput::ShutdownBegun);
        }
    }

    /// Whoever runs for an end, and for the next one as well, is not told to stop before that.
    fn keep_hooks(&mut self, out: &mut Outbox) {
        for id in self.jobs.ids() {
            let ends = |source: &JobId| *source != id && self.jobs[*source].phase().is_up();
            if self.wiring.hook_of(id).iter().any(ends) {
                self.step_job(out, id, JobInput::SourceEnds);
            }
        }
    }

    /// Is told later, or waits for the end of another job.
    fn is_left_alone(&self, id: JobId) -> bool {
        let job = &self.jobs[id];
        match job.phase() {
            Phase::Starting | Phase::Running => true,
            Phase::Stopped | Phase::Exited | Phase::Fatal => job.waits() && self.wiring.is_hook(id),
            Phase::Backoff | Phase::Stopping | Phase::Unknown => false,
        }
    }

    /// A new agent goes on with it.
    pub(super) fn resume_shutdown(&mut self, out: &mut Outbox) {
        match &self.state.stage {
            NodeStage::Starting | NodeStage::Running => {}
            NodeStage::Stopping(Shutdown { deadline, killing, .. }) => {
                out.command(Command::SetTimer { token: Token::ShutdownDeadline, at: *deadline });
                if *killing {
                    wait_for_the_killed(out);
                }
            }
        }
    }

    pub(super) fn shutdown_time_over(&mut self, out: &mut Outbox) {
        match &self.state.stage {
            NodeStage::Starting | NodeStage::Running => {}
            NodeStage::Stopping(shutdown) => {
                let at = shutdown.deadline;
                if out.now.mono < at {
                    out.command(Command::SetTimer { token: Token::ShutdownDeadline, at });
                } else {
                    self.kill_all(out);
                }
            }
        }
    }

    fn kill_all(&mut self, out: &mut Outbox) {
        if let NodeStage::Stopping(shutdown) = &mut self.state.edit().stage
            && !std::mem::replace(&mut shutdown.killing, true)
        {
            wait_for_the_killed(out);
        }
        for id in self.jobs.ids() {
            self.step_job(out, id, JobInput::Stop(Force::Kill));
        }
    }

    /// What is left is not going to tell of its end.
    pub(super) fn shutdown_overdue(&mut self, out: &mut Outbox) {
        match &self.state.stage {
            NodeStage::Stopping(Shutdown { killing: true, code, again, .. }) if !self.is_over() => {
                out.command(Command::Exit { code: code.unwrap_or(0), again: *again });
            }
            NodeStage::Starting | NodeStage::Running | NodeStage::Stopping(_) => {}
        }
    }

    /// A process of a job has ended: a main job's code is the code of the run.
    pub(super) fn process_ended(state: &mut Journaled<NodeState>, plan: &JobPlan, exit: &Exit) {
        match &state.stage {
            NodeStage::Stopping(shutdown) if plan.main && shutdown.code.is_none() => {
                let code = Some(exit.shell_code());
                let shutdown = Shutdown { code, ..shutdown.clone() };
                state.edit().stage = NodeStage::Stopping(shutdown);
            }
            NodeStage::Starting | NodeStage::Running | NodeStage::Stopping(_) => {}
        }
    }

    /// The end of some jobs for good is the end of the node.
    pub(super) fn end_with_job(&mut self, out: &mut Outbox) {
        if out.events.is_empty() && !self.step.update_over {
            return;
        }
        let ends = |id: &JobId| {
            let (plan, job) = self.jobs.both(*id);
            let ends = |well| self.jobs.plan().node.exit.ends_with(plan, well);
            // The way back of an update brings up what has died of it.
            job.ended_for_good().is_some_and(ends) && !self.rollout.tells(&plan.name)
        };
        let ender = match self.state.stage {
            NodeStage::Running => self.jobs.enders().find(ends),
            NodeStage::Starting | NodeStage::Stopping(_) => None,
        };
        if let Some(id) = ender {
            let code = self.jobs[id].last_exit().map_or(STUCK, Exit::shell_code);
            self.note_stuck(code);
            self.shut_down(out, Why::Ended { code });
        }
    }

    /// Ends a node in which nothing will happen any more. `true`: it has come to that.
    pub(super) fn end_if_stuck(&mut self, out: &mut Outbox) -> bool {
        if !std::mem::take(&mut self.step.moved) {
            return false;
        }
        let code = self.code_if_stuck();
        if let Some(code) = code {
            self.note_stuck(code);
            self.shut_down(out, Why::Ended { code });
        }
        code.is_some()
    }

    /// With which code a node ends in which nothing will happen any more, if this is one.
    pub(super) fn code_if_stuck(&self) -> Option<i32> {
        match self.state.stage {
            NodeStage::Starting | NodeStage::Stopping(_) => return None,
            NodeStage::Running if self.is_app_coming_back() || self.rollout.tells_any() => {
                return None;
            }
            NodeStage::Running => {}
        }
        match self.jobs.plan().node.exit {
            ExitRule::Never => None,
            ExitRule::All | ExitRule::Any | ExitRule::AnyFailure => {
                self.all_ended().or_else(|| self.stuck())
            }
            ExitRule::Main => self.stuck(),
        }
    }

    fn all_ended(&self) -> Option<i32> {
        if self.jobs.census().any_lives() {
            return None;
        }
        let unneeded = self.unneeded(&self.startable());
        let mut all_well = true;
        for (id, plan, job) in self.jobs.iter().filter(|(id, ..)| !self.has_left(*id)) {
            if unneeded.contains(&id) {
                all_well &= job.last_run_well().unwrap_or(true);
                continue;
            }
            // What its app took down because another one failed had no say in that.
            let app_failed = self.rest_reason_of(plan, job) == Some(RestReason::AppFailed);
            let taken_down = app_failed && job.incarnation() > 0;
            all_well &= if taken_down && !job.holds() { true } else { job.ended_for_good()? };
        }
        Some(if all_well { 0 } else { 1 })
    }

    /// Whether a run that ends with this code does so because nothing could progress any more, and
    /// not because a job whose end is its own ended with just that code.
    #[must_use]
    pub fn ends_stuck(&self, code: i32) -> bool {
        let rule = self.jobs.plan().node.exit;
        let job_said_so = self.jobs().any(|(plan, job)| {
            rule.ends_with(plan, false) && job.last_exit().map(Exit::shell_code) == Some(STUCK)
        });
        code == STUCK && !job_said_so
    }

    /// The jobs that could not progress any more, and why; only in the agent that saw it happen.
    #[must_use]
    pub fn why_stuck(&self) -> &[StuckJob] {
        &self.stuck
    }

    /// Before the jobs are told to rest: afterwards nobody can say what they waited for.
    fn note_stuck(&mut self, code: i32) {
        if code == STUCK {
            self.stuck = self.stuck_jobs();
        }
    }

    fn stuck(&self) -> Option<i32> {
        let alive = self.jobs.census().any_lives();
        let main_waits = match self.jobs.plan().node.exit {
            ExitRule::Main => self.jobs.mains().any(|id| self.jobs[id].waits()),
            ExitRule::All | ExitRule::Any | ExitRule::AnyFailure | ExitRule::Never => false,
        };
        if self.jobs.is_empty() || (alive && !main_waits) {
            return None;
        }
        let startable = self.startable();
        if self.jobs.ids().any(|id| self.may_be_woken(&startable, id)) {
            return None;
        }
        let hopeless =
            |id: JobId, job: &Job| job.waits() && !job.will_give_up() && !startable.may_start(id);
        let main_is_stuck = main_waits && self.jobs.mains().any(|id| hopeless(id, &self.jobs[id]));
        let all_are_stuck =
            !alive && self.jobs.iter().all(|(id, _, job)| !job.waits() || hopeless(id, job));
        (main_is_stuck || all_are_stuck).then_some(STUCK)
    }

    /// A user or a trigger may set it going.
    fn may_be_woken(&self, startable: &Startable, id: JobId) -> bool {
        let (plan, job) = self.jobs.both(id);
        match (job.desired(), self.rest_reason_of(plan, job)) {
            (Desired::Run, _) => is_triggered(plan) && startable.may_start(id),
            (Desired::Rest, None) => job.rests() && !self.has_left(id),
            // Its app comes to it, or will not: nobody has to.
            (Desired::Rest, Some(RestReason::NotReached)) => self.awaited_sequence(id).is_none(),
            (Desired::Rest, Some(RestReason::StartAborted | RestReason::AppFailed)) => false,
            (Desired::Disabled, _) => !self.has_left(id),
        }
    }

    /// It is gone from the plan, and its process with it.
    pub(super) fn has_left(&self, id: JobId) -> bool {
        self.jobs.is_leaving(id) && !self.jobs[id].holds()
    }

    /// Says how the run ends, once: when this input has left no process.
    pub(super) fn exit_if_empty(&self, out: &mut Outbox, before: bool) {
        match &self.state.stage {
            NodeStage::Stopping(shutdown) if self.is_over() && !before => {
                let (code, again) = (shutdown.code.unwrap_or(0), shutdown.again);
                out.command(Command::Exit { code, again });
            }
            NodeStage::Starting | NodeStage::Running | NodeStage::Stopping(_) => {}
        }
    }

    /// The node has stopped, as far as it knew before this input.
    pub(super) fn was_over(&self, input: &Input) -> bool {
        match input {
            // The last agent may not have come to say so.
            Input::Attached { .. } => false,
            Input::Boot
            | Input::Spawned { .. }
            | Input::Exited { .. }
            | Input::TaskDone { .. }
            | Input::Timer { .. }
            | Input::Request(_)
            | Input::Ordered { .. }
            | Input::Elsewhere { .. }
            | Input::Fleet(_)
            | Input::Signalled { .. }
            | Input::Checked { .. }
            | Input::Notified { .. }
            | Input::CronDue { .. }
            | Input::Instances { .. }
            | Input::Withdrawn { .. }
            | Input::LogGap { .. }
            | Input::Rollout(_)
            | Input::RolloutEnds
            | Input::StrayKilled { .. } => self.is_over(),
        }
    }

    fn is_over(&self) -> bool {
        match self.state.stage {
            NodeStage::Starting | NodeStage::Running => false,
            NodeStage::Stopping(_) => !self.jobs.census().any_holds(),
        }
    }
}

fn wait_for_the_killed(out: &mut Outbox) {
    let at = out.now.mono.after(GRACE);
    out.command(Command::SetTimer { token: Token::ShutdownOverdue, at });
}
