//! The series of a fleet: its nodes and where its jobs run, as this node sees them.

use super::exposition::{Exposition, MetricType};
use mainstay_core::fleet::PeerState;
use mainstay_wire::api::FleetStatus;

pub(super) fn families(out: &mut Exposition, fleet: &FleetStatus) {
    let help = "1 while a node takes part in the fleet.";
    let mut family = out.family("mainstay_fleet_node_up", MetricType::Gauge, help);
    for node in &fleet.nodes {
        let takes_part = node.state == PeerState::Running;
        family.count(&[("node", node.name.as_str())], u64::from(takes_part));
    }
    let help = "What the placed jobs of a node take of its machine, of 100.";
    let mut family = out.family("mainstay_fleet_node_load", MetricType::Gauge, help);
    for node in &fleet.nodes {
        family.count(&[("node", node.name.as_str())], u64::from(node.load));
    }
    let help = "1 on the node that is master.";
    let is_master = fleet.master.as_ref() == Some(&fleet.node);
    out.family("mainstay_fleet_master", MetricType::Gauge, help).count(&[], u64::from(is_master));
    let help = "1 for each node where a placed job runs, or is about to.";
    let mut family = out.family("mainstay_placed_job", MetricType::Gauge, help);
    for job in &fleet.jobs {
        for copy in job.copies.iter().filter(|copy| copy.is_home()) {
            let (name, node) = (job.job.as_str(), copy.node.as_str());
            family.count(&[("job_name", name), ("node", node), ("state", &copy.state)], 1);
        }
    }
    let help = "On how many nodes a placed job runs: 0 nowhere, 2 or more a conflict.";
    let mut family = out.family("mainstay_placed_job_copies", MetricType::Gauge, help);
    for job in &fleet.jobs {
        let copies = job.copies.iter().filter(|copy| copy.is_home()).count();
        family.count(&[("job_name", job.job.as_str())], copies as u64);
    }
}
