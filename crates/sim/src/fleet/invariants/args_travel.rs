//! Once nothing disturbs it a job runs with the arguments that are wanted for it, wherever it has got
//! to; unless somebody has started it by hand, or it was placed by a master that had not heard of them:
//! a user had given them under another one, whose nodes were off or beyond a cut at that time.

use crate::fleet::Observation;
use mainstay_core::{fleet::JobWish, name::Name};

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let Some((_, master)) = seen.master() else { return Vec::new() };
    let mut broken = Vec::new();
    for (node, it) in &seen.nodes {
        for job in it.jobs.iter().filter(|(_, state)| state.is_active()).map(|(job, _)| job) {
            let wish = master.wishes.of(job);
            let wanted = wish.map(|wish| wish.args.clone()).unwrap_or_default();
            let args = it.args.get(job).cloned().unwrap_or_default();
            let unheard = wish.is_some_and(|wish| is_unheard(seen, job, node, wish));
            if args != wanted && !it.by_hand.contains(job) && !unheard {
                broken.push(format!("{job} runs on {node} with {args:?} instead of {wanted:?}"));
            }
        }
    }
    broken
}

/// The master that gave the job to this node did not know of its arguments.
fn is_unheard(seen: &Observation, job: &Name, node: &Name, wish: &JobWish) -> bool {
    let last = seen.placements.iter().rfind(|it| it.job == *job && it.node == *node);
    let (Some(placed), Some(given)) = (last, wish.args_by()) else { return false };
    // In a whole fleet a later master would have started it again.
    let elsewhere = if seen.divided { given.term != placed.term } else { given.term < placed.term };
    placed.args_by.as_ref() != Some(given) && elsewhere
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{history::Placing, invariants::example, scenario::name};
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

    #[test]
    fn it_cannot_blame_a_master_that_has_not_heard_of_them() {
        let number = |term| Number { term: example::term(term, "a"), counter: 1 };
        let found = |given, placed, args_by| {
            let (job, node, term) = (name("web"), name("b"), example::term(placed, "a"));
            let (takes_part, is_known, load) = (true, true, 60);
            let (is_drained, is_ending, hands_over) = (false, false, false);
            let placing = Placing {
                job,
                node,
                takes_part,
                is_drained,
                is_ending,
                hands_over,
                is_known,
                load,
                term,
                args_by,
            };
            let mut seen = example::with(|it| it.placements.push(placing));
            let a = seen.nodes.get_mut(&name("a")).expect("a node");
            let (args, web) = (vec!["-v".to_owned()], name("web"));
            a.wishes.write(number(given), &web, AskedBy::User, Desired::Run, Some(args));
            broken(&seen).len()
        };
        assert_eq!(found(1, 2, None), 0);
        assert_eq!(found(1, 2, Some(number(1))), 1, "it has heard of them");
        assert_eq!(found(2, 2, None), 1, "it has given them itself");
        assert_eq!(found(2, 1, None), 1, "the next one has, and has not started it again");
    }
}
