//! Once nothing disturbs it a fleet runs no job twice.

use crate::fleet::Observation;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let homes = |job| seen.homes(job).map(ToString::to_string).collect::<Vec<_>>();
    let twice = seen.jobs().map(|job| (job, homes(job))).filter(|(_, it)| it.len() > 1);
    twice.map(|(job, homes)| format!("{job} runs on [{}]", homes.join(" "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{invariants::example, scenario::name};
    use mainstay_core::fleet::CopyState;

    #[test]
    fn it_can_fail() {
        let mut seen = example::fleet();
        assert_eq!(broken(&seen), Vec::<String>::new());
        let c = seen.nodes.get_mut(&name("c")).expect("a node");
        c.jobs.insert(name("web"), CopyState::Backoff);
        assert_eq!(broken(&seen), ["web runs on [b c]"]);
    }
}
