//! A journal that is lost. While there is one, the keeper is told what it has to remember of each job
//! for that case; once it is gone, what the keeper has and remembers is how things are.
//!
//! | the keeper | then |
//! |---|---|
//! | has a process | it runs on; one that was not to run is being stopped |
//! | has the record of an end | that follows, and is dealt with as ever |
//! | remembers that it is not to run | it rests, as it had ended |
//! | had a process, and nobody stopped it | it comes back by policy, or by its trigger |
//! | never had it | it waits as at boot; a member of an app stays at rest |
//!
//! Nothing is triggered by what is found, and what nobody can know is named: what those have said
//! that have ended (`unknown`).

use super::{Command, Held, JournalLoss, LostJournal, Node, NodePhase, state::NodeStage};
use crate::{
    event::{EventName, Kind, Outbox, Source},
    job::{Desired, Job, JobInput},
    name::Name,
    plan::Awaited,
};
use std::collections::BTreeMap;

impl Node {
    /// The last time that the journal was lost in this run.
    #[must_use]
    pub fn journal_loss(&self) -> Option<&JournalLoss> {
        self.state.journal_loss.as_ref()
    }

    /// Has the keeper remember what this step has changed. A node that stops starts nothing.
    pub(super) fn have_remembered(&mut self, out: &mut Outbox) {
        if self.state.shutting().is_some() {
            return;
        }
        for (id, before) in &self.step.touched {
            let (Some(before), now) = (before, &self.jobs[*id]) else { continue };
            let summary = now.summary();
            if before.desired() != now.desired() || before.summary() != summary {
                let job = self.jobs.name(*id).clone();
                out.command(Command::Remember { job, summary: summary.map(Box::new) });
            }
        }
    }

    /// A new agent: the last one may not have got to it.
    pub(super) fn remind(&mut self, out: &mut Outbox, held: &BTreeMap<&Name, &Held>) {
        for (plan, job) in self.jobs() {
            let known = held.get(&plan.name).and_then(|held| held.summary.as_ref());
            let summary = job.summary();
            if known != summary.as_ref() {
                let job = plan.name.clone();
                out.command(Command::Remember { job, summary: summary.map(Box::new) });
            }
        }
    }

    pub(super) fn recover(
        &mut self,
        out: &mut Outbox,
        held: &BTreeMap<&Name, &Held>,
        lost: LostJournal,
    ) {
        self.step.recovering = true;
        let unborn = self.state.phase() == NodePhase::Starting;
        let LostJournal { reason, phase } = lost;
        let unknown = self.unknown(held);
        let (since, state) = (out.now.wall, self.state.edit());
        state.journal_loss =
            Some(JournalLoss { since, reason: reason.clone(), unknown: unknown.clone() });
        if unborn {
            state.note(Awaited::Event(EventName::Startup));
            state.stage = NodeStage::Running;
        }
        match phase {
            NodePhase::Maintenance => state.maintenance = true,
            NodePhase::Running => state.maintenance = false,
            NodePhase::Starting | NodePhase::Stopping => {}
        }
        out.emit(Source::NODE, Kind::JournalLost { reason, unknown });
        self.forget_args(held);
        self.tell_all(out, |plan| JobInput::Recovered { held: held.get(&plan.name).copied() });
        if unborn {
            self.recover_apps(out);
            self.arm_unlaunched(out);
        }
        // There were fewer tasks than events.
        out.tasks.edit().skip_to(out.seq);
        self.resume_tasks(out);
        if phase == NodePhase::Stopping && self.state.shutting().is_none() {
            self.shut_down_asked(out);
        }
        self.resume_shutdown(out);
        self.look_again(out);
        self.remind(out, held);
    }

    /// Those that have run and ended, and those whose app was to say when: nobody can say whether
    /// it has.
    fn unknown(&self, held: &BTreeMap<&Name, &Held>) -> Vec<Name> {
        let unknown = self.jobs().filter(|(plan, _)| match held.get(&plan.name) {
            Some(held) => held.live.is_none() && (held.highest > 0 || held.summary.is_none()),
            None => plan.app.is_some(),
        });
        unknown.map(|(plan, _)| plan.name.clone()).collect()
    }

    fn arm_unlaunched(&mut self, out: &mut Outbox) {
        for id in self.jobs.ids() {
            let job: &Job = &self.jobs[id];
            if job.incarnation() == 0 && job.desired() == Desired::Run {
                self.step_job(out, id, JobInput::Arm);
            }
        }
    }
}
