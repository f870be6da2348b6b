//! Once nothing disturbs it a job runs with the arguments that are wanted for it, wherever it has got
//! to; unless somebody has started it by hand, or a user has given others on a side of a cut on which
//! it did not run, or to nodes that were off while one whose disk was torn started it.

use crate::fleet::Observation;
use mainstay_core::fleet::FleetRequest;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let Some((_, master)) = seen.master() else { return Vec::new() };
    let mut broken = Vec::new();
    for (node, it) in &seen.nodes {
        for job in it.jobs.iter().filter(|(_, state)| state.is_active()).map(|(job, _)| job) {
            let wanted = master.wishes.of(job).map(|wish| wish.args.clone()).unwrap_or_default();
            let args = it.args.get(job).cloned().unwrap_or_default();
            let unheard = seen.divided || !seen.torn.is_empty();
            let elsewhere = unheard && was_given(seen, &wanted);
            if args != wanted && !it.by_hand.contains(job) && !elsewhere {
                broken.push(format!("{job} runs on {node} with {args:?} instead of {wanted:?}"));
            }
        }
    }
    broken
}

/// A user has given these arguments to some start.
fn was_given(seen: &Observation, wanted: &[String]) -> bool {
    seen.asked.iter().any(|it| match &it.request {
        FleetRequest::StartJob { args, .. } | FleetRequest::RestartJob { args, .. } => {
            args.as_deref() == Some(wanted)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{invariants::example, scenario::name};
    use mainstay_core::{
        fleet::{AskedBy, Number},
        job::Desired,
    };

    #[test]
    fn it_can_fail() {
        let mut seen = example::fleet();
        assert_eq!(broken(&seen), Vec::<String>::new());
        let number = Number { term: example::term(1, "a"), counter: 1 };
        let a = seen.nodes.get_mut(&name("a")).expect("a node");
        let args = vec!["-v".to_owned()];
        a.wishes.write(number, &name("web"), AskedBy::User, Desired::Run, Some(args.clone()));
        assert_eq!(broken(&seen), ["web runs on b with [] instead of [\"-v\"]"]);
        let b = seen.nodes.get_mut(&name("b")).expect("a node");
        b.args.insert(name("web"), args);
        assert_eq!(broken(&seen), Vec::<String>::new());
    }
}
