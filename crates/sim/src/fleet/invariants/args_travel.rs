//! Once nothing disturbs it a job runs with the arguments that are wanted for it, wherever it has got
//! to; unless somebody has started it by hand, or its node has lost its arguments with its journal, or
//! it could not start again where it runs: the jobs of its app are to be together, and the others of
//! them run elsewhere; or there is no room for it, or for them, beside what else runs there.

use crate::fleet::Observation;
use mainstay_core::{fleet::placement::FULL, name::Name, plan::Distribution};

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let Some((_, master)) = seen.master() else { return Vec::new() };
    let mut broken = Vec::new();
    for (node, it) in &seen.nodes {
        for job in it.jobs.iter().filter(|(_, state)| state.is_active()).map(|(job, _)| job) {
            let wanted = master.wishes.of(job).map(|wish| wish.args.clone()).unwrap_or_default();
            let args = it.args.get(job).cloned().unwrap_or_default();
            let is_unknown = it.by_hand.contains(job) || it.args_lost.contains(job);
            if args != wanted && !is_unknown && !is_bound(seen, job, node) {
                broken.push(format!("{job} runs on {node} with {args:?} instead of {wanted:?}"));
            }
        }
    }
    broken
}

/// It could not start again there.
fn is_bound(seen: &Observation, job: &Name, node: &Name) -> bool {
    let Some(rules) = seen.catalogue.jobs.get(job) else { return false };
    let machine = |node: &Name| seen.nodes.get(node).map_or("", |it| it.machine.as_str());
    let distribution = seen.catalogue.app(&rules.app).map(|it| it.distribution);
    let is_beside = |other: &Name| match distribution.unwrap_or_default() {
        Distribution::Any => true,
        Distribution::OneNode => other == node,
        Distribution::OneMachine => machine(other) == machine(node),
    };
    let mates = || seen.catalogue.members(&rules.app).filter(|(mate, _)| *mate != job);
    let homes: Vec<&Name> = mates().flat_map(|(mate, _)| seen.homes(mate)).collect();
    // The first of those that are to be together goes where there is room for all.
    let is_first = distribution.unwrap_or_default() != Distribution::Any && homes.is_empty();
    let starting = mates().filter(|(_, it)| is_first && it.place.start_sequence > 0);
    let wants = starting.map(|(_, it)| it.place.load).sum::<u32>() + rules.place.load;
    let bears = seen.machines().get(machine(node)).copied().unwrap_or_default();
    let is_full = bears - rules.place.load + wants > FULL;
    is_full || homes.iter().any(|home| !is_beside(home))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{
        invariants::example,
        scenario::{Scenario, name},
    };
    use mainstay_core::{
        fleet::{AskedBy, CopyState, Number},
        job::Desired,
        plan::OnFailure,
    };
    use std::sync::Arc;

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
    fn it_cannot_blame_the_fleet_for_what_somebody_has_started_by_hand() {
        let mut seen = example::fleet();
        let b = seen.nodes.get_mut(&name("b")).expect("a node");
        b.args.insert(name("web"), vec!["-v".to_owned()]);
        assert_eq!(broken(&seen), ["web runs on b with [\"-v\"] instead of []"]);
        let b = seen.nodes.get_mut(&name("b")).expect("a node");
        b.by_hand.insert(name("web"));
        assert_eq!(broken(&seen), Vec::<String>::new());
    }

    #[test]
    fn it_cannot_blame_the_fleet_for_what_a_node_has_lost() {
        let mut seen = example::fleet();
        let b = seen.nodes.get_mut(&name("b")).expect("a node");
        b.args.insert(name("web"), vec!["-v".to_owned()]);
        b.args_lost.insert(name("web"));
        assert_eq!(broken(&seen), Vec::<String>::new());
    }

    #[test]
    fn it_cannot_blame_the_fleet_for_a_job_that_could_not_start_again_there() {
        for (distribution, load, mate_on, expected) in [
            (Distribution::Any, 40, "a", 1),
            (Distribution::OneNode, 40, "a", 0),
            (Distribution::OneNode, 40, "b", 1),
            (Distribution::OneMachine, 40, "a", 0),
            (Distribution::OneMachine, 40, "b", 1),
            (Distribution::Any, 41, "nowhere", 1),
            (Distribution::OneNode, 40, "nowhere", 1),
            (Distribution::OneNode, 41, "nowhere", 0),
            (Distribution::Any, 41, "b", 0),
        ] {
            let mut seen = example::fleet();
            let scenario = Scenario::of("a b c").app("shop", OnFailure::Continue);
            seen.catalogue = Arc::new(scenario.job("db", 1, load).job("web", 2, 60).catalogue);
            let apps = &mut Arc::make_mut(&mut seen.catalogue).apps;
            apps.iter_mut().for_each(|app| app.distribution = distribution);
            let b = seen.nodes.get_mut(&name("b")).expect("a node");
            b.args.insert(name("web"), vec!["-v".to_owned()]);
            if let Some(mate) = seen.nodes.get_mut(&name(mate_on)) {
                mate.jobs.insert(name("db"), CopyState::Running);
            }
            assert_eq!(broken(&seen).len(), expected, "{distribution:?} {load} {mate_on}");
        }
    }
}
