//! What somebody sees who looks at all nodes.

use super::FleetWorld;
use crate::fleet::{Observation, observation::NodeSeen, sim_node::SimNode};

impl FleetWorld {
    #[must_use]
    pub fn observe(&self) -> Observation {
        let nodes = self.nodes.iter().filter_map(|(name, node)| Some((name.clone(), seen(node)?)));
        Observation {
            nodes: nodes.collect(),
            history: self.history.clone(),
            catalogue: self.written.clone(),
            rules: self.scenario.rules.clone(),
        }
    }
}

fn seen(node: &SimNode) -> Option<NodeSeen> {
    let it = node.running.as_ref()?;
    let facts = it.fleet.said()?;
    let by_hand = it.jobs.iter().filter(|(_, copy)| copy.by_hand && copy.state.is_active());
    let args_lost = it.jobs.iter().filter(|(_, copy)| copy.args_lost);
    let stopped = it.jobs.iter().filter(|(_, copy)| copy.by_hand && !copy.state.is_active());
    Some(NodeSeen {
        run: facts.run.clone(),
        machine: facts.machine.clone(),
        stage: it.fleet.stage(),
        term: it.fleet.term().cloned(),
        is_master: it.fleet.is_master(),
        drained: facts.drained,
        jobs: it.jobs.iter().map(|(job, copy)| (job.clone(), copy.state)).collect(),
        by_hand: by_hand.map(|(job, _)| job.clone()).collect(),
        stopped_by_hand: stopped.map(|(job, _)| job.clone()).collect(),
        args: it.jobs.iter().map(|(job, copy)| (job.clone(), copy.args.clone())).collect(),
        args_lost: args_lost.map(|(job, _)| job.clone()).collect(),
        wishes: it.fleet.wishes().clone(),
        failures: facts.failures.iter().count(),
        open_requests: facts.requests.len(),
        work: facts.work.clone(),
    })
}
