//! Two machines under one name, of which each has the disk of the other: the one that was there first
//! is the node.

use crate::shop::{ask, assert_settled, await_that, is_up, pass, runs, world as shop};
use mainstay_core::{fleet::FleetRequest, plan::OnFailure};
use mainstay_sim::fleet::{Fault, FleetWorld, Observation, scenario::name};

fn jobs_of(seen: &Observation, node: &str) -> usize {
    let jobs = seen.nodes.get(&name(node)).map(|it| it.jobs.values());
    jobs.map_or(0, |jobs| jobs.filter(|state| state.is_active()).count())
}

/// It is not in sync with anybody, and tries again.
fn is_refused(seen: &Observation, node: &str) -> bool {
    let seen = &seen.nodes[&name(node)];
    seen.term.is_none() && !seen.is_master
}

fn cloned(node: &str) -> FleetWorld {
    let mut world = shop(OnFailure::RestartProcess);
    await_that(&mut world, "it runs", is_up);
    pass(&mut world, 5);
    world.inflict(Fault::Clone(name(node)));
    world
}

#[test]
fn a_copy_of_a_node_is_refused_as_long_as_the_first_answers() {
    // The master, a node with a job, one without.
    for node in ["a", "b", "c"] {
        let mut world = cloned(node);
        let before = world.trace.len();
        pass(&mut world, 60);
        let seen = world.observe();
        let copy = format!("{node}-copy");
        assert!(is_refused(&seen, &copy), "{}", world.trace);
        assert!(runs(&seen, "db", "a") && runs(&seen, "web", "b"), "{}", world.trace);
        assert_eq!((jobs_of(&seen, &copy), seen.reigns.len()), (0, 1), "{}", world.trace);
        let since = &world.trace[before..];
        assert!(!since.contains("Lost") && !since.contains(" > "), "{}", world.trace);
        assert!(since.contains("Refused"), "{}", world.trace);
        world.inflict(Fault::EndClone(name(node)));
        assert_settled(&mut world);
    }
}

#[test]
fn a_copy_takes_the_place_of_the_first_once_that_is_gone() {
    for (node, job) in [("a", "db"), ("b", "web")] {
        let mut world = cloned(node);
        pass(&mut world, 20);
        world.inflict(Fault::Crash(name(node)));
        let copy = format!("{node}-copy");
        await_that(&mut world, "it takes part", |seen| !is_refused(seen, &copy));
        pass(&mut world, 10);
        // From now on the first is the one that comes late.
        world.inflict(Fault::Boot(name(node)));
        pass(&mut world, 20);
        let seen = world.observe();
        assert!(is_refused(&seen, node), "{}", world.trace);
        assert_eq!(jobs_of(&seen, node), 0, "{}", world.trace);
        ask(&mut world, "c", FleetRequest::MoveJob { job: name(job), to: name(node) });
        await_that(&mut world, "it has jobs", |seen| runs(seen, job, &copy));
        world.inflict(Fault::EndClone(name(node)));
        assert_settled(&mut world);
    }
}
