//! The end of a node: why it comes, how long it takes, and with which code.
//!
//! It comes when somebody asks (a request, SIGTERM, SIGINT, SIGQUIT, SIGRTMIN+3), or by the plan's
//! rule: `main` when a main job has ended for good, `all` when every job has, and none of them
//! because a user stopped it (such a job may be started again). All jobs stop together within one
//! deadline; a second signal, or the deadline, kills what is left. A request may be repeated: who
//! does not know whether it was taken asks again, and is not impatient. When no process is left the
//! run exits: with the code of the first main job whose process ended in or before the
//! shutdown, else with what the rule says, else 0.

use super::{
    Command, Node, Token,
    life::{Course, Shutdown, Why},
};
use crate::{
    exit::Exit,
    job::{Force, Job},
    outbox::Outbox,
    plan::{ExitRule, JobPlan},
};

impl Node {
    pub(super) fn shut_down_asked(&mut self, out: &mut Outbox) {
        match &self.life.course {
            Course::Starting | Course::Running => self.shut_down(out, Why::Asked),
            Course::Stopping(_) => {}
        }
    }

    pub(super) fn shut_down_signalled(&mut self, out: &mut Outbox) {
        match &mut self.life.course {
            Course::Starting | Course::Running => self.shut_down(out, Why::Signalled),
            Course::Stopping(shutdown) if !shutdown.signalled => shutdown.signalled = true,
            Course::Stopping(_) => self.kill_all(out),
        }
    }

    fn shut_down(&mut self, out: &mut Outbox, why: Why) {
        let shutdown = Shutdown::new(out.now.mono, self.plan.node.stop_timeout, why);
        let at = shutdown.deadline;
        self.life.course = Course::Stopping(shutdown);
        out.command(Command::SetTimer { token: Token::ShutdownDeadline, at });
        self.each(out, |job, turn| job.stop(turn, Force::Grace));
        self.exit_if_empty(out);
    }

    /// A new agent goes on with it.
    pub(super) fn resume_shutdown(&mut self, out: &mut Outbox) {
        match &self.life.course {
            Course::Starting | Course::Running => {}
            Course::Stopping(Shutdown { deadline, .. }) => {
                out.command(Command::SetTimer { token: Token::ShutdownDeadline, at: *deadline });
                self.exit_if_empty(out);
            }
        }
    }

    pub(super) fn shutdown_time_over(&mut self, out: &mut Outbox) {
        match &self.life.course {
            Course::Starting | Course::Running => {}
            Course::Stopping(shutdown) => {
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
        if let Course::Stopping(shutdown) = &mut self.life.course {
            shutdown.killing = true;
        }
        self.each(out, |job, turn| job.stop(turn, Force::Kill));
    }

    /// A process of the job at this place has ended: is that the end of the node, or of its end?
    pub(super) fn process_ended(&mut self, out: &mut Outbox, at: usize, exit: &Exit) {
        let (Some(plan), Some(job)) = (self.plan.jobs.get(at), self.jobs.get(at)) else { return };
        let good = job.ended_for_good();
        let code = exit.shell_code();
        match &mut self.life.course {
            Course::Starting | Course::Running => {
                if good.is_some()
                    && let Some(code) = self.rule_says(plan, code)
                {
                    self.shut_down(out, Why::Ended { code });
                }
            }
            Course::Stopping(shutdown) => {
                if plan.main && shutdown.code.is_none() {
                    shutdown.code = Some(code);
                }
                self.exit_if_empty(out);
            }
        }
    }

    /// There may be nothing to run at all.
    pub(super) fn exit_without_jobs(&mut self, out: &mut Outbox) {
        match self.plan.node.exit {
            ExitRule::All if self.plan.jobs.is_empty() => {
                self.shut_down(out, Why::Ended { code: 0 });
            }
            ExitRule::All | ExitRule::Main | ExitRule::Never => {}
        }
    }

    /// The code of the run, if the end of this job for good is the end of the node.
    fn rule_says(&self, ended: &JobPlan, code: i32) -> Option<i32> {
        match self.plan.node.exit {
            ExitRule::Main => ended.main.then_some(code),
            ExitRule::All => {
                let mut all_well = true;
                for job in &self.jobs {
                    all_well &= job.ended_for_good()?;
                }
                Some(if all_well { 0 } else { 1 })
            }
            ExitRule::Never => None,
        }
    }

    pub(super) fn exit_if_empty(&self, out: &mut Outbox) {
        match &self.life.course {
            Course::Starting | Course::Running => {}
            Course::Stopping(shutdown) => {
                if !self.jobs.iter().any(Job::holds) {
                    out.command(Command::Exit { code: shutdown.code.unwrap_or(0) });
                }
            }
        }
    }
}
