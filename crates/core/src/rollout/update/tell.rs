//! The services of an update, told one after the other; and on its way back those that have heard of
//! it.

use super::UpdateStage;
use crate::rollout::{
    Rollout, RolloutStage, RolloutStep, ServiceRecord, ToldState,
    failure::Blame,
    service::{ServiceCtx, ServiceProgress, ServiceUpdate},
};

impl Rollout {
    /// Tells the services of the record from this one on, or tells them that it is over; behind the last
    /// it is. While the node ends none is begun: the next start goes on.
    pub(super) fn tell_from(&mut self, step: &mut RolloutStep, from: usize, back: bool) {
        match (self.next_service(from, back), back) {
            (Some(_), _) if self.ending => self.stage = RolloutStage::Idle,
            (Some(at), _) => {
                let Some(service) = self.begin_service(step, at, back) else { return };
                if let Some(update) = self.update() {
                    update.stage = match back {
                        false => UpdateStage::Telling { at, service },
                        true => UpdateStage::Returning { at, service },
                    };
                }
            }
            (None, false) => self.commit(step),
            (None, true) => self.conclude_failure(step),
        }
    }

    /// The next one that is to be told; on the way back, that may have heard of the update.
    fn next_service(&self, from: usize, back: bool) -> Option<usize> {
        let record = self.kept.update.as_ref()?;
        let is_concerned = |entry: &ServiceRecord| match (entry.told, back) {
            (ToldState::Untold | ToldState::Back, false) => true,
            (ToldState::Telling | ToldState::Confirmed, false) => false,
            (ToldState::Telling | ToldState::Confirmed, true) => true,
            // An agent before has told it.
            (ToldState::Untold, true) => entry.ran,
            (ToldState::Back, true) => false,
        };
        let is_next =
            |entry: &ServiceRecord| is_concerned(entry) && self.service(&entry.service).is_some();
        let mut entries = record.services.iter().enumerate().skip(from);
        entries.find(|(_, entry)| is_next(entry)).map(|(at, _)| at)
    }

    fn begin_service(
        &mut self,
        step: &mut RolloutStep,
        at: usize,
        back: bool,
    ) -> Option<ServiceUpdate> {
        let entry = self.kept.update.as_mut()?.services.get_mut(at)?;
        let plan = self.plan.services.iter().find(|it| it.name == entry.service)?;
        let notes = &mut self.notes;
        let ctx = &mut ServiceCtx::new(step, plan, entry, &mut self.ops, notes);
        Some(ServiceUpdate::begin(ctx, back))
    }

    /// Lets the service that is told or returns take an answer, or the time.
    pub(in crate::rollout) fn tell_service(
        &mut self,
        step: &mut RolloutStep,
        input: impl FnOnce(&mut ServiceUpdate, &mut ServiceCtx<'_>) -> ServiceProgress,
    ) {
        let RolloutStage::Updating(update) = &mut self.stage else { return };
        let (at, service, back) = match &mut update.stage {
            UpdateStage::Telling { at, service } => (*at, service, false),
            UpdateStage::Returning { at, service } => (*at, service, true),
            UpdateStage::Staging { .. }
            | UpdateStage::Checking { .. }
            | UpdateStage::Switching { .. }
            | UpdateStage::Restoring { .. } => return,
        };
        let Some(entry) = self.kept.update.as_mut().and_then(|it| it.services.get_mut(at)) else {
            return;
        };
        let Some(plan) = self.plan.services.iter().find(|it| it.name == entry.service) else {
            return;
        };
        let (name, notes) = (plan.name.clone(), &mut self.notes);
        let ctx = &mut ServiceCtx::new(step, plan, entry, &mut self.ops, notes);
        match (input(service, ctx), back) {
            (ServiceProgress::GoesOn, _) => {}
            (ServiceProgress::Confirmed, false) => {
                entry.told = ToldState::Confirmed;
                self.tell_from(step, at + 1, back);
            }
            (ServiceProgress::Confirmed, true) => {
                entry.told = ToldState::Back;
                self.tell_from(step, at + 1, back);
            }
            (ServiceProgress::Failed(trouble), false) => {
                let why = format!("service '{name}': {trouble}");
                self.fail_update(step, &Blame::Service(name), why);
            }
            // The next start goes on with the way back.
            (ServiceProgress::Failed(_), true) if self.ending => self.stage = RolloutStage::Idle,
            (ServiceProgress::Failed(trouble), true) => {
                entry.told = ToldState::Back;
                self.note_adrift(format!("service '{name}' cannot go back: {trouble}"));
                self.tell_from(step, at + 1, back);
            }
        }
    }
}
