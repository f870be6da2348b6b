//! A fleet of two versions: what nodes of the next one say has more in it than this one knows.

use crate::shop::{ask, await_that, is_in_operation, pass, runs};
use mainstay_core::{
    fleet::{FleetRequest, NodeFacts},
    name::Name,
    plan::OnFailure,
};
use mainstay_sim::fleet::{
    Dialect, Fault, FleetWorld, Script, invariants,
    scenario::{Scenario, name},
};
use serde_json::{Value, from_value, json, to_value};
use std::{collections::BTreeMap, time::Duration};

/// As it is heard by a node of this version: fields that it does not know are in the facts
/// themselves, and in all records that they have.
fn next_version(facts: &NodeFacts) -> NodeFacts {
    let mut all = to_value(facts).expect("JSON");
    for records in ["/wishes", "/jobs", "/waves/records"] {
        let records = all.pointer_mut(records).and_then(Value::as_object_mut);
        for (_, record) in records.into_iter().flatten() {
            record["later"] = json!({ "colour": "red" });
        }
    }
    for one in ["", "/work"] {
        if let Some(Value::Object(one)) = all.pointer_mut(one) {
            one.insert("later".to_owned(), json!([1, 2]));
        }
    }
    from_value(all).expect("facts")
}

/// Where the jobs run that nobody asks for, and which process each of them is.
fn processes(world: &FleetWorld) -> BTreeMap<(Name, String), u64> {
    let of = |facts: &NodeFacts| {
        let machine = facts.machine.clone();
        let up = facts.jobs.iter().filter(|(job, it)| it.state.is_up() && **job != name("busy"));
        up.map(|(job, it)| ((job.clone(), machine.clone()), it.incarnation)).collect::<Vec<_>>()
    };
    world.facts().flat_map(|it| of(it)).collect()
}

/// The wishes of each node as this version knows them.
fn wishes(world: &FleetWorld) -> Vec<Value> {
    let of = |facts: &NodeFacts| {
        let mut wishes = to_value(&facts.wishes).expect("JSON");
        for (_, wish) in wishes.as_object_mut().into_iter().flatten() {
            wish.as_object_mut().map(|it| it.remove("later"));
        }
        wishes
    };
    world.facts().map(|it| of(it)).collect()
}

/// The next version knows its own fields: it has its wishes as it has written them, and the others
/// as they have heard them.
fn assert_settled(world: &mut FleetWorld) {
    pass(world, 20);
    let seen = world.observe();
    let broken = [invariants::always(&seen), invariants::settled(&seen)].concat();
    let others = broken.into_iter().filter(|it| !it.starts_with("all nodes have the same wishes"));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<String>::new(), "{}", world.trace);
    let wishes = wishes(world);
    assert!(wishes.windows(2).all(|two| two[0] == two[1]), "{wishes:?}");
}

fn has_later_fields(world: &FleetWorld, node: &str) -> bool {
    let kept = world.kept(&name(node)).expect("a node");
    to_value(&kept.wishes).expect("JSON").to_string().contains("colour")
}

#[test]
fn a_fleet_is_upgraded_node_by_node_and_back_while_it_works() {
    for seed in 0..20 {
        let scenario = Scenario::of("a b c").app("shop", OnFailure::RestartProcess);
        let scenario = scenario.job("db", 1, 60).job("web", 2, 60).job("busy", 3, 10);
        let mut world = FleetWorld::new(scenario, Script::quiet(seed));
        world.inflict(Fault::Weather { loss: 0, repeats: 200, delay: 80 });
        await_that(&mut world, "it runs", |seen| {
            let up = runs(seen, "db", "a") && runs(seen, "web", "b");
            up && seen.homes(&name("busy")).count() == 1 && is_in_operation(seen)
        });
        let before = processes(&world);
        for dialect in [Some(next_version as Dialect), None] {
            for (node, other) in [("a", "b"), ("b", "c"), ("c", "a")] {
                let args = Some(vec![format!("{seed}-{node}")]);
                let job = name("busy");
                ask(&mut world, other, FleetRequest::StopJob { job: job.clone() });
                // At any moment of it.
                let end = world.now() + Duration::from_millis(17 * seed);
                world.run_until(end);
                world.upgrade(&name(node), dialect);
                ask(&mut world, other, FleetRequest::StartJob { job, args });
                pass(&mut world, 5);
            }
            assert_settled(&mut world);
            assert_eq!(processes(&world), before, "nothing was touched\n{}", world.trace);
        }
        let seen = world.observe();
        let home = seen.homes(&name("busy")).next().expect("it runs").clone();
        let args = &seen.nodes[&home].args[&name("busy")];
        assert_eq!(args, &[format!("{seed}-c")], "the last wish counts");
    }
}

/// On the disks of those, too, that do not know it.
#[test]
fn what_the_next_version_has_written_is_there_when_it_comes_back() {
    let scenario = Scenario::of("a b c").app("shop", OnFailure::RestartProcess).job("db", 1, 60);
    let mut world = FleetWorld::new(scenario, Script::quiet(7));
    await_that(&mut world, "it runs", |seen| runs(seen, "db", "a") && is_in_operation(seen));
    // The master is the first.
    world.upgrade(&name("a"), Some(next_version));
    pass(&mut world, 5);
    ask(&mut world, "b", FleetRequest::StopJob { job: name("db") });
    await_that(&mut world, "it stops", |seen| !runs(seen, "db", "a"));
    ask(&mut world, "b", FleetRequest::StartJob { job: name("db"), args: None });
    await_that(&mut world, "it runs again", |seen| runs(seen, "db", "a"));
    assert!(has_later_fields(&world, "b") && has_later_fields(&world, "c"), "{}", world.trace);
    for node in ["b", "c"] {
        world.inflict(Fault::Reboot(name(node)));
        pass(&mut world, 5);
        assert!(has_later_fields(&world, node), "{node}\n{}", world.trace);
    }
    assert_settled(&mut world);
}
