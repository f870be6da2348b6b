//! What a mesh does when one thing happens to it.

use crate::world::{KEY, Start, TICK, World, name};
use mainstay_engine::mesh::Versions;
use std::time::Duration;

const OTHER_KEY: &str = "fedcba9876543210fedcba9876543210";

#[test]
fn nodes_that_know_each_other_meet_at_once() {
    let mut world = World::of(&["a", "b", "c"]);
    let took = world.run_until("all meet", |it| it.all_see(&["a.1", "b.1", "c.1"]));
    assert!(took < Duration::from_millis(500), "{took:?}");
    world.run(Duration::from_secs(30));
    assert!(world.all_see(&["a.1", "b.1", "c.1"]));
}

#[test]
fn one_seed_is_enough_to_find_all_others() {
    let mut world = World::default();
    for (name, port) in [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)] {
        world.start(&Start::of(name, "1", port, &[1]));
    }
    world.run_until("all meet", |it| it.all_see(&["a.1", "b.1", "c.1", "d.1", "e.1"]));
}

#[test]
fn a_killed_node_is_seen_within_two_ticks_by_all() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut times = Vec::new();
    for round in 0..40u64 {
        let mut world = World::of(&names[..3 + (round % 4) as usize]);
        world.delay = Duration::from_millis(1);
        world.run(Duration::from_millis(3000 + 37 * round));
        world.nodes.remove(&2);
        let left = world.nodes.len();
        times.push(world.run_until("it is gone", |it| {
            it.nodes.keys().all(|port| it.seen(*port).len() == left)
        }));
    }
    times.sort();
    assert!(times[20] <= Duration::from_millis(1200), "half of them within {:?}", times[20]);
    assert!(times[39] <= Duration::from_millis(2000), "all of them within {:?}", times[39]);
}

#[test]
fn a_node_that_leaves_is_gone_at_once() {
    let mut world = World::of(&["a", "b", "c"]);
    world.run(Duration::from_secs(3));
    let leaving = world.nodes.get_mut(&2).expect("it is there");
    leaving.mesh.leave();
    let said = leaving.mesh.take_sends();
    world.nodes.remove(&2);
    said.into_iter().for_each(|(to, datagram)| world.send(2, to.port(), datagram));
    let took = world.run_until("it is gone", |it| it.all_see(&["a.1", "c.1"]));
    assert!(took < Duration::from_millis(50), "{took:?}");
}

#[test]
fn a_new_run_at_the_same_place_is_the_end_of_the_one_before() {
    let mut world = World::of(&["a", "b", "c"]);
    world.run(Duration::from_secs(3));
    world.start(&Start::of("b", "2", 2, &[1, 3]));
    let took = world.run_until("the new one is there", |it| it.all_see(&["a.1", "b.2", "c.1"]));
    assert!(took < Duration::from_millis(500), "{took:?}");
    world.run(Duration::from_secs(20));
    assert!(world.all_see(&["a.1", "b.2", "c.1"]));
}

#[test]
fn a_second_run_of_a_name_elsewhere_is_a_member_beside_the_first() {
    let mut world = World::of(&["a", "b"]);
    world.run(Duration::from_secs(3));
    world.start(&Start::of("b", "2", 9, &[1, 2]));
    world.run_until("both are there", |it| it.all_see(&["a.1", "b.1", "b.2"]));
    let members = &world.nodes[&1].members;
    let id = |run: &str| members.iter().find(|it| it.member.run.to_string() == run);
    assert!(id("1").map(|it| it.member.id) < id("2").map(|it| it.member.id), "the earlier first");
}

#[test]
fn a_new_agent_of_the_same_run_is_neither_a_loss_nor_a_join() {
    let mut world = World::of(&["a", "b", "c"]);
    world.run(Duration::from_secs(3));
    for _ in 0..20 {
        world.start(&Start::of("b", "1", 2, &[1, 3]));
        for _ in 0..400 {
            world.run(Duration::from_millis(5));
            for port in [1, 3] {
                assert_eq!(world.seen(port), ["a.1", "b.1", "c.1"]);
            }
        }
        assert!(world.all_see(&["a.1", "b.1", "c.1"]));
    }
}

#[test]
fn a_cut_is_seen_on_both_sides_and_heals_by_itself() {
    for seeds in [vec![1, 2, 3, 4], vec![1]] {
        let mut world = World::default();
        for (name, port) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
            world.start(&Start::of(name, "1", port, &seeds));
        }
        world.run_until("all meet", |it| it.all_see(&["a.1", "b.1", "c.1", "d.1"]));
        world.cut(&[1, 2], &[3, 4]);
        world.run_until("both sides see it", |it| {
            it.seen(1) == ["a.1", "b.1"] && it.seen(3) == ["c.1", "d.1"]
        });
        world.run(Duration::from_secs(620));
        world.cuts.clear();
        let took = world.run_until("healed", |it| it.all_see(&["a.1", "b.1", "c.1", "d.1"]));
        assert!(took < Duration::from_secs(3), "{took:?}");
    }
}

#[test]
fn a_node_that_was_alone_for_long_announces_itself_again() {
    let mut world = World::of(&["a", "b"]);
    world.run(Duration::from_secs(3));
    world.nodes.remove(&2);
    world.run(Duration::from_secs(620));
    assert_eq!(world.seen(1), ["a.1"]);
    world.start(&Start::of("b", "2", 2, &[]));
    world.run_until("it is found by the other", |it| it.all_see(&["a.1", "b.2"]));
}

#[test]
fn a_node_that_was_frozen_takes_nobody_for_dead() {
    let mut world = World::of(&["a", "b", "c"]);
    world.run(Duration::from_secs(3));
    for time in [150, 350, 650, 950, 5000] {
        let frozen = |world: &mut World, is: bool| {
            world.nodes.get_mut(&1).expect("it is there").frozen = is;
        };
        frozen(&mut world, true);
        world.run(Duration::from_millis(time));
        frozen(&mut world, false);
        for _ in 0..600 {
            world.run(Duration::from_millis(5));
            assert_eq!(world.seen(1), ["a.1", "b.1", "c.1"], "after {time} ms");
        }
        world.run_until("it is back", |it| it.all_see(&["a.1", "b.1", "c.1"]));
    }
}

#[test]
fn lost_and_late_datagrams_are_no_alarm() {
    for (loss, delay) in [(5, 1), (10, 20), (0, 60)] {
        let mut world = World::of(&["a", "b", "c", "d", "e"]);
        (world.loss, world.delay) = (loss, Duration::from_millis(delay));
        let all = ["a.1", "b.1", "c.1", "d.1", "e.1"];
        world.run_until("all meet", |it| it.all_see(&all));
        for _ in 0..1200 {
            world.run(Duration::from_millis(50));
            assert!(world.all_see(&all), "{loss} % lost, {delay} ms late");
        }
    }
}

#[test]
fn what_a_node_has_to_say_is_heard_of_by_all_in_a_tick() {
    let mut world = World::of(&["a", "b", "c", "d", "e"]);
    world.run(Duration::from_secs(3));
    world.nodes.get_mut(&1).expect("it is there").mesh.say(7, 42);
    let took = world.run_until("all have heard of it", |it| {
        it.nodes.iter().filter(|(port, _)| **port != 1).all(|(_, node)| {
            node.digests.iter().any(|it| (it.version, it.hash) == (7, 42) && it.node == name("a"))
        })
    });
    assert!(took <= TICK, "{took:?}");
    world.run(Duration::from_secs(20));
    assert!(world.nodes.values().all(|it| it.digests.len() <= 1), "each hears of it once");
}

#[test]
fn at_rest_a_node_sends_and_receives_little() {
    let figures = |count: usize| {
        let names: Vec<&'static str> =
            "abcdefghijklmnopqrst".split("").skip(1).take(count).collect();
        let mut world = World::of(&names);
        world.run(Duration::from_secs(20));
        let (sent, bytes) = (world.sent, world.bytes);
        world.run(Duration::from_secs(20));
        // Sent by one is received by another.
        let each = 20 * count as u64 / 2;
        ((world.sent - sent) / each, (world.bytes - bytes) / each)
    };
    let (three, twenty) = (figures(3), figures(20));
    println!("datagrams and bytes a second: {three:?} of 3, {twenty:?} of 20");
    assert!(three.1 <= 4000 && twenty.1 <= 6000, "{three:?} {twenty:?}");
}

#[test]
fn another_key_is_another_fleet_and_both_keys_meet_during_a_rotation() {
    let mut world = World::of(&["a", "b"]);
    let other = Start { keys: OTHER_KEY.to_owned(), ..Start::of("c", "1", 3, &[1, 2]) };
    world.start(&other);
    world.run(Duration::from_secs(5));
    assert_eq!(
        (world.seen(1), world.seen(3)),
        (vec!["a.1".into(), "b.1".into()], vec!["c.1".into()])
    );
    assert!(world.nodes[&1].mesh.drops().foreign > 0);
    // Node by node, as docs/fleets/fleets.md says.
    let steps =
        [format!("{KEY}\n{OTHER_KEY}"), format!("{OTHER_KEY}\n{KEY}"), OTHER_KEY.to_owned()];
    let mut world = World::of(&["a", "b", "c"]);
    let mut run = 1;
    for keys in steps {
        run += 1;
        for (name, port) in [("a", 1), ("b", 2), ("c", 3)] {
            let run = ["", "", "2", "3", "4"][run];
            world.start(&Start { keys: keys.clone(), ..Start::of(name, run, port, &[1, 2, 3]) });
            let all = |it: &World| it.nodes.keys().all(|port| it.seen(*port).len() == 3);
            world.run_until("they are together", all);
        }
    }
    assert!(world.all_see(&["a.4", "b.4", "c.4"]));
}

/// As an upgrade in place: the agent is another one, the run is the same.
#[test]
fn agents_of_the_next_version_and_back_again_are_neither_lost_nor_told_of() {
    let next = Versions { oldest: 1, newest: 2 };
    let all = ["a.1", "b.1", "c.1"];
    let mut world = World::of(&["a", "b", "c"]);
    world.run_until("all meet", |it| it.all_see(&all));
    for versions in [next, Versions::SPOKEN] {
        for (name, port) in [("a", 1), ("b", 2), ("c", 3)] {
            world.start(&Start { versions, ..Start::of(name, "1", port, &[1, 2, 3]) });
            for _ in 0..50 {
                world.run(TICK / 10);
                let others = world.nodes.keys().filter(|it| **it != port);
                others.for_each(|it| assert_eq!(world.seen(*it), all, "{name} speaks {versions}"));
            }
            assert_eq!(world.seen(port), all);
            assert!(world.nodes.values().all(|it| it.other_versions.is_empty()));
        }
    }
}

#[test]
fn an_upgrade_to_the_next_version_goes_node_by_node() {
    let versions = |oldest, newest| Versions { oldest, newest };
    let mut world = World::of(&["a", "b", "c"]);
    world.run_until("all meet", |it| it.all_see(&["a.1", "b.1", "c.1"]));
    for (run, spoken) in [("2", versions(1, 2)), ("3", versions(2, 3))] {
        for (name, port) in [("a", 1), ("b", 2), ("c", 3)] {
            world.start(&Start { versions: spoken, ..Start::of(name, run, port, &[1, 2, 3]) });
            let together = |it: &World| it.nodes.keys().all(|port| it.seen(*port).len() == 3);
            world.run_until("they are together", together);
            world.run(Duration::from_secs(5));
            assert!(together(&world), "{name} speaks {spoken}");
        }
    }
    // One that is two versions behind is told with both numbers, and not taken.
    world.start(&Start::of("d", "1", 4, &[1, 2, 3]));
    world.run(Duration::from_secs(3));
    assert_eq!(world.seen(1), ["a.3", "b.3", "c.3"]);
    assert_eq!(world.nodes[&1].other_versions, [(1, versions(2, 3))]);
    assert_eq!(world.nodes[&4].other_versions, [], "nobody speaks to it unasked");
}
