//! What this node says of itself.

use super::NodeFacts;
use crate::{
    clock::Mono,
    fleet::{EngineCommand, Fleet, FleetOutcome, Work},
};
use std::sync::Arc;

impl Fleet {
    pub(in crate::fleet) fn facts(&self, now: Mono, work: Option<Arc<Work>>) -> NodeFacts {
        NodeFacts {
            run: self.me.run.clone(),
            version: self.said.as_ref().map_or(self.version_before, |said| said.version) + 1,
            now,
            machine: self.me.machine.clone(),
            in_sync: self.in_sync,
            peers: self.peers.taking_part().clone(),
            accepts: self.peers.accepts().clone(),
            term: self.term.clone(),
            highest_term: self.highest_term.clone(),
            stage: self.stage,
            isolates: self.peers.isolates().clone(),
            drained: self.drained,
            hands_over: self.hands_over,
            ending: self.ending,
            catalogue: self.catalogue.clone(),
            jobs: self.jobs.clone(),
            wishes: self.wishes.clone(),
            failures: self.failures.clone(),
            requests: self.requests.open().clone(),
            departed: self.departed.clone(),
            work,
            waves: self.waves.facts().clone(),
        }
    }

    pub(in crate::fleet) fn say(&mut self, now: Mono, out: &mut FleetOutcome) {
        let work = self.work_to_say(now);
        let facts = self.facts(now, work);
        if self.said.as_ref().is_some_and(|said| said.is_same(&facts)) {
            return;
        }
        let facts = Arc::new(facts);
        self.said = Some(facts.clone());
        out.engine.push(EngineCommand::Say(facts));
    }
}
