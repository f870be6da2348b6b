//! The environment that processes are given beyond what the node was started with and under what
//! their job says itself.
//!
//! | from | variables |
//! |---|---|
//! | users (`mainstay environ`) | whatever they have set or taken away |
//! | jobs that are advertised | `MAINSTAY_<JOB>_IP` |
//! | `[containerpilot]` | `CONTAINERPILOT_PID`, `CONTAINERPILOT_<JOB>_IP`, `CONTAINERPILOT_<NAME>_PID` |

use crate::{agent::Agent, discovery};
use mainstay_core::{name::Name, plan::JobPlan};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    pub(crate) set: Vec<(String, String)>,
    pub(crate) unset: Vec<String>,
}

impl Agent {
    pub(crate) fn surroundings(&self) -> Surroundings {
        let mut around = Surroundings::default();
        for (name, value) in self.node.environ().iter() {
            match value {
                Some(value) => around.set.push((name.to_owned(), value.to_owned())),
                None => around.unset.push(name.to_owned()),
            }
        }
        around.set.extend(addresses("MAINSTAY", &self.addresses));
        if self.node.plan().containerpilot.is_some() {
            around.set.extend(addresses(PILOT, &self.addresses));
            let keeper = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
            let keeper = keeper.map(|pid| (format!("{PILOT}_PID"), pid.to_string()));
            around.set.extend(keeper);
            let jobs = self.node.jobs();
            around.set.extend(jobs.filter_map(|(plan, job)| {
                Some((format!("{PILOT}_{}_PID", process_word(&plan.name)), job.pid()?.to_string()))
            }));
        }
        around
    }

    /// Finds out the addresses at which others are told to find jobs.
    pub(crate) fn look_for_addresses(&mut self) {
        let advertised = |plan: &JobPlan| {
            let address = discovery::address(plan.advertise.as_ref()?).ok()?;
            Some((plan.name.clone(), address.to_string()))
        };
        self.addresses = self.node.plan().jobs.iter().filter_map(advertised).collect();
    }
}

const PILOT: &str = "CONTAINERPILOT";

fn addresses<'a>(
    prefix: &'a str,
    advertised: &'a [(Name, String)],
) -> impl Iterator<Item = (String, String)> + 'a {
    advertised.iter().map(move |(job, ip)| {
        let job = job.as_str().to_ascii_uppercase().replace('-', "_");
        (format!("{prefix}_{job}_IP"), ip.clone())
    })
}

/// Whatever is neither letter nor digit becomes one `_`. ContainerPilot cuts a name at its last dot
/// before that, which the name of a job has not.
fn process_word(job: &Name) -> String {
    let mut word = String::new();
    for c in job.as_str().chars() {
        match c.is_ascii_alphanumeric() {
            true => word.push(c.to_ascii_uppercase()),
            false if word.ends_with('_') => {}
            false => word.push('_'),
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words() {
        let name = |text: &str| Name::new(text).expect("a name");
        assert_eq!(process_word(&name("on-change_-x")), "ON_CHANGE_X");
        let advertised = [(name("my-web"), "10.0.0.1".to_owned())];
        let found: Vec<_> = addresses("MAINSTAY", &advertised).collect();
        assert_eq!(found, [("MAINSTAY_MY_WEB_IP".to_owned(), "10.0.0.1".to_owned())]);
    }
}
