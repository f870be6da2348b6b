//! Datagrams that nobody meant.

use crate::world::{Start, World, address};
use mainstay_engine::mesh::{DropCounts, MeshEvent};
use proptest::prelude::*;
use std::time::Duration;

#[test]
fn everything_that_was_recorded_is_worth_nothing_when_it_comes_again() {
    let mut world = World::of(&["a", "b", "c"]);
    world.records = true;
    world.run(Duration::from_secs(5));
    let recorded = std::mem::take(&mut world.recorded);
    let members = world.nodes[&2].members.clone();
    let before = world.nodes[&2].mesh.drops().clone();
    let node = world.nodes.get_mut(&2).expect("it is there");
    let (mut hellos, mut others) = (0, 0);
    for (from, to, datagram) in recorded.iter().filter(|(_, to, _)| *to == 2) {
        node.mesh.take(address(*from), datagram);
        assert_eq!(*to, 2);
        match datagram[4] {
            1 => hellos += 1,
            _ => others += 1,
        }
    }
    assert!(hellos > 0 && others > 50);
    assert_eq!(node.mesh.drops().replayed, before.replayed + others);
    // A hello is answered, and nothing else comes of it.
    assert!(node.mesh.take_sends().len() <= hellos);
    assert_eq!(node.mesh.take_events(), []);
    // Nor does another start of the node take anything of it.
    world.start(&Start::of("b", "1", 2, &[]));
    let node = world.nodes.get_mut(&2).expect("it is there");
    node.mesh.take_events();
    for (from, _, datagram) in recorded.iter().filter(|(_, to, _)| *to == 2) {
        node.mesh.take(address(*from + 50), datagram);
    }
    assert_eq!(node.mesh.take_events(), [], "{members:?}");
}

proptest! {
    #[test]
    fn whatever_comes_is_dropped_and_counted(
        datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..1600), 1..20)
    ) {
        let mut world = World::of(&["a"]);
        let node = world.nodes.get_mut(&1).expect("it is there");
        node.mesh.take_events();
        for datagram in &datagrams {
            node.mesh.take(address(9), datagram);
        }
        let DropCounts { oversized, cut, foreign, version, replayed, stale, malformed } =
            node.mesh.drops().clone();
        let all = oversized + cut + foreign + version + replayed + stale + malformed;
        prop_assert_eq!(all, datagrams.len() as u64);
        prop_assert_eq!(node.mesh.take_sends(), []);
    }

    #[test]
    fn one_of_ours_that_was_cut_or_changed_is_dropped(
        which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), bit in 0..8u8, cut in any::<bool>()
    ) {
        let mut world = World::of(&["a", "b"]);
        world.records = true;
        world.run(Duration::from_millis(1500));
        let recorded = std::mem::take(&mut world.recorded);
        let to_b: Vec<_> = recorded.iter().filter(|(_, to, _)| *to == 2).collect();
        let mut datagram = which.get(&to_b).2.clone();
        let at = at.index(datagram.len());
        match cut {
            true => datagram.truncate(at),
            false => datagram[at] ^= 1 << bit,
        }
        let node = world.nodes.get_mut(&2).expect("it is there");
        let before = node.mesh.drops().clone();
        node.mesh.take(address(1), &datagram);
        let after = node.mesh.drops();
        prop_assert_eq!(after.malformed, before.malformed);
        prop_assert_eq!(after.replayed, before.replayed);
        prop_assert_ne!(after, &before);
        let is_of_version = |event: &MeshEvent| matches!(event, MeshEvent::OtherVersion { .. });
        prop_assert!(node.mesh.take_events().iter().all(is_of_version));
    }
}
