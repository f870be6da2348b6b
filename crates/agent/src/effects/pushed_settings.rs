//! What the keeper was told to hold for each process, so that only what has changed is told again.

use super::identity;
use crate::agent::Agent;
use mainstay_core::{name::Name, plan::NodeLog};
use mainstay_wire::link::{HeldJob, LiveSettings, ToKeeper};
use std::collections::BTreeMap;

/// The last settings that the keeper was told.
#[derive(Debug, Default)]
pub(crate) struct PushedSettings {
    /// Of each job that was started in this run; `None`: not known.
    told: BTreeMap<Name, Option<LiveSettings>>,
    /// `None`: this agent has not said it yet.
    node_log: Option<NodeLog>,
}

impl PushedSettings {
    /// As the keeper says itself.
    pub(crate) fn of(held: &[HeldJob]) -> PushedSettings {
        let live = held.iter().filter_map(|it| Some((it.job.clone(), it.live.as_ref()?)));
        let told = live.map(|(job, live)| (job, live.settings.clone())).collect();
        PushedSettings { told, node_log: None }
    }

    pub(crate) fn spawned(&mut self, job: &Name, rules: LiveSettings) {
        self.told.insert(job.clone(), Some(rules));
    }

    pub(crate) fn forget(&mut self, job: &Name) {
        self.told.remove(job);
    }
}

impl Agent {
    /// How lines are forwarded, before anything is said or started.
    pub(crate) fn push_node_log(&mut self) {
        let log = &self.node.plan().log;
        if self.pushed_settings.node_log.as_ref() != Some(log) {
            self.pushed_settings.node_log = Some(log.clone());
            let message = ToKeeper::NodeLog(Box::new(log.clone()));
            self.own.extend(self.outgoing.send(&mut self.link, message));
        }
    }

    /// Another plan is in force, or another agent: what runs follows it.
    pub(crate) fn push_settings(&mut self) {
        self.push_node_log();
        let mut news = Vec::new();
        for (job, told) in &mut self.pushed_settings.told {
            let Some(plan) = self.node.job_plan(job.as_str()) else { continue };
            let rules = identity::live_settings(plan);
            if told.as_ref() != Some(&rules) {
                *told = Some(rules.clone());
                news.push(ToKeeper::UpdateSettings { job: job.clone(), settings: Box::new(rules) });
            }
        }
        for message in news {
            self.own.extend(self.outgoing.send(&mut self.link, message));
        }
    }
}
