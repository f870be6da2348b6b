//! The environment that processes are given beyond what the node was started with and under what
//! their job says itself.
//!
//! | from | variables |
//! |---|---|
//! | users (`mainstay environ`) | whatever they have set or taken away |
//! | jobs that are advertised | `MAINSTAY_<JOB>_IP` |
//! | watches | `MAINSTAY_WATCH_<NAME>_FILE`; to jobs that name it also `MAINSTAY_WATCH_<NAME>`, if it is small |
//! | `[containerpilot]` | `CONTAINERPILOT_PID`, `CONTAINERPILOT_<JOB>_IP`, `CONTAINERPILOT_<NAME>_PID` |

use crate::agent::Agent;
use mainstay_core::{
    discovery::InstanceList,
    interface::choose,
    name::Name,
    plan::{JobPlan, SourceRef, Trigger, Watched},
    text::bytes,
};
use mainstay_discovery::addresses as addresses_here;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Env {
    pub(crate) set: Vec<(String, String)>,
    pub(crate) unset: Vec<String>,
}

impl Agent {
    /// For a task of the node itself.
    pub(crate) fn env_for_node(&self) -> Env {
        let mut env = Env::default();
        for (name, value) in self.node.environ().iter() {
            match value {
                Some(value) => env.set.push((name.to_owned(), value.to_owned())),
                None => env.unset.push(name.to_owned()),
            }
        }
        env
    }

    pub(crate) fn env_for(&self, plan: &JobPlan) -> Env {
        let mut env = self.env_for_node();
        env.set.extend(addresses("MAINSTAY", &self.addresses));
        for watch in &self.node.plan().watches {
            let word = format!("MAINSTAY_WATCH_{}", watch.name.in_variables());
            if names(plan, &watch.name) {
                let known = self.node.watch(watch.name.as_str()).and_then(|it| it.instances());
                let list = known.map_or("[]", InstanceList::as_json);
                let list = Some(list).filter(|list| list.len() <= SMALL);
                env.set.extend(list.map(|list| (word.clone(), list.to_owned())));
            }
            let file = match &watch.of {
                Watched::Service { .. } => self.watch_files.path(&watch.name),
                Watched::File(path) => path.clone(),
            };
            env.set.push((format!("{word}_FILE"), bytes::from_os(file.as_os_str())));
        }
        if self.node.plan().containerpilot.is_some() {
            env.set.extend(addresses(CONTAINERPILOT, &self.addresses));
            let keeper = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
            let keeper = keeper.map(|pid| (format!("{CONTAINERPILOT}_PID"), pid.to_string()));
            env.set.extend(keeper);
            // It cuts a name at its last dot as well, which the name of a job has not.
            let jobs = self.node.jobs();
            env.set.extend(jobs.filter_map(|(plan, job)| {
                Some((
                    format!("{CONTAINERPILOT}_{}_PID", plan.name.in_variables()),
                    job.pid()?.to_string(),
                ))
            }));
        }
        env
    }

    /// Finds out the addresses at which others are told to find jobs.
    pub(crate) fn look_for_addresses(&mut self) {
        let jobs = self.node.plan().jobs.iter();
        let advertised = jobs.filter_map(|plan| Some((&plan.name, plan.advertise.as_ref()?)));
        let (mut here, mut missing) = (None, false);
        self.addresses = advertised
            .filter_map(|(job, advertise)| {
                let here = here.get_or_insert_with(|| addresses_here().unwrap_or_default());
                let address = choose(&advertise.interfaces, here).ok();
                missing |= address.is_none();
                Some((job.clone(), address?.to_string()))
            })
            .collect();
        self.address_missing = missing;
    }
}

const CONTAINERPILOT: &str = "CONTAINERPILOT";
/// A longer list is for its file: an environment is no place for it.
const SMALL: usize = 4 << 10;

/// The job waits for the watch, or follows it.
fn names(plan: &JobPlan, watch: &Name) -> bool {
    let is = |source: &SourceRef| matches!(source, SourceRef::Watch(name) if name == watch);
    let each = match &plan.when.trigger {
        Some(Trigger::Each(conditions)) => conditions.as_slice(),
        Some(Trigger::Interval(_) | Trigger::Cron(_)) | None => &[],
    };
    plan.when.once.iter().chain(each).any(|condition| is(&condition.source))
        || plan.follows.as_ref().is_some_and(|follows| is(&follows.source))
}

fn addresses<'a>(
    prefix: &'a str,
    advertised: &'a [(Name, String)],
) -> impl Iterator<Item = (String, String)> + 'a {
    advertised.iter().map(move |(job, ip)| {
        let job = job.as_str().to_ascii_uppercase().replace('-', "_");
        (format!("{prefix}_{job}_IP"), ip.clone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words() {
        let name = |text: &str| Name::new(text).expect("a name");
        assert_eq!(name("on-change_-x").in_variables(), "ON_CHANGE_X");
        let advertised = [(name("my-web"), "10.0.0.1".to_owned())];
        let found: Vec<_> = addresses("MAINSTAY", &advertised).collect();
        assert_eq!(found, [("MAINSTAY_MY_WEB_IP".to_owned(), "10.0.0.1".to_owned())]);
    }
}
