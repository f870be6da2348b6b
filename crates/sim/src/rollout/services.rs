//! Services of the small world: each has loaded the files that it was told of last.

use super::RolloutWorld;
use mainstay_core::{
    name::Name,
    plan::ServicePlan,
    rollout::{
        InstanceNumber, ProbeOutcome, RequestCount, RolloutCommand, RolloutInput, ServiceAction,
        ServiceFacts, Trouble,
    },
};
use std::collections::BTreeSet;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SimService {
    pub running: bool,
    /// What its files were when it was told last.
    pub has: Vec<Option<u8>>,
    /// Contents that it cannot use.
    pub cannot: BTreeSet<u8>,
    /// Whatever it is told fails.
    pub deaf: bool,
    /// Its unit is not there.
    pub missing: bool,
    /// It ends when it is told of what it cannot use, and nothing starts it again.
    pub mortal: bool,
    pub died: bool,
    pub told: u64,
    pub instances: Instances,
    pub children: BTreeSet<u32>,
    /// Whom it forks when it is reloaded.
    pub forks: BTreeSet<u32>,
    pub healthy: bool,
    pub requests: (RequestCount, RequestCount),
}

/// Of flip-flop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Instances {
    pub active: BTreeSet<InstanceNumber>,
    pub do_not_start: bool,
    pub do_not_stop: bool,
}

impl Default for SimService {
    fn default() -> SimService {
        let none = RequestCount { requests: 0, failures: 0 };
        SimService {
            running: true,
            has: Vec::new(),
            cannot: BTreeSet::new(),
            deaf: false,
            missing: false,
            mortal: false,
            died: false,
            told: 0,
            instances: Instances::default(),
            children: BTreeSet::new(),
            forks: BTreeSet::new(),
            healthy: true,
            requests: (none, none),
        }
    }
}

impl RolloutWorld {
    fn service_plan(&self, name: &Name) -> Option<&ServicePlan> {
        self.plan.services.iter().find(|it| it.name == *name)
    }

    /// What the files of a service are now.
    #[must_use]
    pub fn files_of(&self, name: &Name) -> Vec<Option<u8>> {
        let templates = self.service_plan(name).map_or(&[][..], |it| &it.templates);
        templates.iter().map(|it| self.files.get(it).copied()).collect()
    }

    pub(super) fn perform_on_service(&mut self, command: RolloutCommand) -> Option<RolloutInput> {
        Some(match command {
            RolloutCommand::Inspect { op, service } => {
                let it = self.services.get(&service)?;
                let outcome = match it.missing {
                    true => Err(Trouble("not found".to_owned())),
                    false => Ok(ServiceFacts {
                        running: it.running,
                        healthy: it.healthy,
                        died: it.died,
                        instances: it.instances.active.clone(),
                        main_pid: Some(1),
                        children: it.children.clone(),
                    }),
                };
                RolloutInput::Inspected { op, outcome }
            }
            RolloutCommand::Tell { op, service, action, .. } => {
                let outcome = self.tell_service(&service, &action);
                RolloutInput::Told { op, outcome }
            }
            RolloutCommand::Probe { op, service, .. } => {
                let it = self.services.get(&service)?;
                let outcome = match it.children.is_empty() {
                    false => {
                        let (main_pid, children) = (Some(1), it.children.clone());
                        ProbeOutcome::Children { main_pid, children }
                    }
                    true => {
                        ProbeOutcome::Requests { new: Ok(it.requests.0), old: Ok(it.requests.1) }
                    }
                };
                RolloutInput::Probed { op, outcome }
            }
            RolloutCommand::Load { .. }
            | RolloutCommand::Store { .. }
            | RolloutCommand::Stage { .. }
            | RolloutCommand::Check { .. }
            | RolloutCommand::Switch { .. }
            | RolloutCommand::Restore { .. }
            | RolloutCommand::RunHook { .. }
            | RolloutCommand::Retain { .. }
            | RolloutCommand::Note { .. }
            | RolloutCommand::Publish { .. }
            | RolloutCommand::Ready
            | RolloutCommand::Exit => return None,
        })
    }

    fn tell_service(&mut self, name: &Name, action: &ServiceAction) -> Result<(), Trouble> {
        let files = self.files_of(name);
        let Some(service) = self.services.get_mut(name) else {
            return Err(Trouble("no such service".to_owned()));
        };
        service.told += 1;
        let what = match action {
            ServiceAction::ReloadOrRestart | ServiceAction::Signal(_) | ServiceAction::Exec => {
                service.has.clone_from(&files);
                if !service.forks.is_empty() {
                    service.children.clone_from(&service.forks);
                }
                "reload".to_owned()
            }
            ServiceAction::BringUp => {
                service.has.clone_from(&files);
                (service.running, service.died) = (true, false);
                "bring up".to_owned()
            }
            ServiceAction::Start(number) => {
                let starts = !service.instances.do_not_start;
                if starts {
                    service.has.clone_from(&files);
                    service.instances.active.insert(*number);
                }
                format!("start @{}", number.number())
            }
            ServiceAction::Stop(number) => {
                if !service.instances.do_not_stop {
                    service.instances.active.remove(number);
                }
                format!("stop @{}", number.number())
            }
        };
        let fails = match action {
            ServiceAction::Stop(number) => service.instances.active.contains(number),
            ServiceAction::Start(number) => !service.instances.active.contains(number),
            ServiceAction::ReloadOrRestart
            | ServiceAction::Signal(_)
            | ServiceAction::Exec
            | ServiceAction::BringUp => {
                let cannot = |content: &Option<u8>| {
                    content.is_some_and(|content| service.cannot.contains(&content))
                };
                service.deaf || files.iter().any(cannot)
            }
        };
        if fails && service.mortal {
            (service.running, service.died) = (false, true);
        }
        let shown: Vec<String> =
            files.iter().map(|it| it.map_or("-".to_owned(), |it| it.to_string())).collect();
        let failed = if fails { " fails" } else { "" };
        self.tell(|| format!("{what} {name} with {}{failed}", shown.join(",")));
        match fails {
            true => Err(Trouble("it does not come up".to_owned())),
            false => Ok(()),
        }
    }
}
