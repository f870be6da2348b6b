//! Lines of logs that were lost, until an agent has written that down.
//!
//! At most one number of a job is on its way to the agent; what is lost meanwhile is added up and
//! told after it. So nothing is told twice, nothing is forgotten over agents and upgrades, and no
//! more is kept than two numbers a job.

use crate::keeper::Keeper;
use mainstay_core::name::Name;
use mainstay_wire::link::ToAgent;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LogGaps {
    untold: BTreeMap<Name, u64>,
    /// By the token with which the agent says that it has it.
    told: BTreeMap<u64, (Name, u64)>,
}

impl LogGaps {
    pub(crate) fn add(&mut self, job: Name, lines: u64) {
        *self.untold.entry(job).or_default() += lines;
    }

    pub(crate) fn acknowledged(&mut self, token: u64) {
        self.told.remove(&token);
    }

    /// What is on its way, for an agent that may not have got it.
    pub(crate) fn messages(&self) -> Vec<ToAgent> {
        self.told.iter().map(|(token, gap)| message(*token, gap)).collect()
    }

    /// What can be told next.
    fn next(&mut self, mut token: impl FnMut() -> u64) -> Vec<ToAgent> {
        let waits = |job: &Name| self.told.values().any(|(other, _)| other == job);
        let free: Vec<Name> = self.untold.keys().filter(|job| !waits(job)).cloned().collect();
        let gaps = free.into_iter().filter_map(|job| self.untold.remove_entry(&job));
        let mut said = Vec::new();
        for gap in gaps.collect::<Vec<_>>() {
            let token = token();
            said.push(message(token, &gap));
            self.told.insert(token, gap);
        }
        said
    }
}

fn message(token: u64, (job, lines): &(Name, u64)) -> ToAgent {
    ToAgent::LogGap { token, job: job.clone(), lines: *lines }
}

impl Keeper {
    /// Passes on what was lost, when the agent has read what came before.
    pub(crate) fn send_log_gaps(&mut self) {
        let Some(node) = self.node() else { return };
        let listens = node.agent.as_ref().is_some_and(|agent| agent.welcomed && agent.is_idle());
        if !listens || node.log_gaps.untold.is_empty() {
            return;
        }
        let next_token = &mut node.next_token;
        let said = node.log_gaps.next(|| {
            *next_token += 1;
            *next_token
        });
        for message in said {
            self.send(&message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_while_the_agent_is_told_is_added_up_and_told_after() {
        let (a, b) = (Name::new("a").expect("a name"), Name::new("b").expect("a name"));
        let mut lost = LogGaps::default();
        let mut tokens = 0..;
        let mut next = |lost: &mut LogGaps| lost.next(|| tokens.next().expect("endless"));
        lost.add(a.clone(), 3);
        let first = ToAgent::LogGap { token: 0, job: a.clone(), lines: 3 };
        assert_eq!(next(&mut lost), std::slice::from_ref(&first));
        lost.add(a.clone(), 4);
        lost.add(b.clone(), 1);
        lost.add(a.clone(), 5);
        assert_eq!(next(&mut lost), [ToAgent::LogGap { token: 1, job: b, lines: 1 }]);
        // The next agent hears it again.
        assert_eq!(lost.messages()[0], first);
        lost.acknowledged(0);
        lost.acknowledged(1);
        assert_eq!(next(&mut lost), [ToAgent::LogGap { token: 2, job: a, lines: 9 }]);
        lost.acknowledged(2);
        assert_eq!((lost.messages(), next(&mut lost)), (vec![], vec![]));
    }
}
