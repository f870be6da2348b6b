//! Versions that somebody wants back, and what whoever waits for a version waits for.

use super::*;

/// Somebody wants an earlier version back.
fn by_hand(fleet: &WaveFleet, byte: u8) -> Option<WaveRecord> {
    let offer = WaveOffer { asked: Some(Mono(1)), by_hand: true, ..offer(byte) };
    decided(fleet, &offer, true)
}

/// Three nodes, two at a time, that have come back by hand from version 2 to version 1.
fn rolled_back_by_hand() -> WaveFleet {
    let mut fleet = WaveFleet::new(3, WaveSize::Nodes(3));
    fleet.until_quiet();
    fleet.record = by_hand(&fleet, 1).expect("it begins");
    assert_eq!((&fleet.record.version, &fleet.record.before), (&version(1), &Some(version(2))));
    assert_eq!(fleet.record.stage, WaveStage::Storing, "in waves, as any other");
    (fleet.decisions, fleet.since) = (100, fleet.now);
    fleet.until_quiet();
    assert_eq!(fleet.having(&version(1)), ["n02", "n03"]);
    fleet.pass(PAUSE);
    assert_eq!((fleet.having(&version(1)).len(), &fleet.record.stage), (3, &WaveStage::Applied));
    fleet
}

#[test]
fn what_was_rolled_back_by_hand_is_not_applied_again_though_its_source_serves_it() {
    let fleet = rolled_back_by_hand();
    assert_eq!(fleet.record.rolled_back, Some(version(2)));
    assert_eq!(offered(&fleet, 2, false), None, "its source serves it still");
    let again = offered(&fleet, 2, true).expect("somebody asks");
    assert_eq!((again.version, again.before), (version(2), Some(version(1))));
    assert_eq!((again.by_hand, again.rolled_back), (false, None));
}

#[test]
fn what_was_rolled_back_by_hand_may_come_again_once_its_source_has_served_another() {
    let mut fleet = rolled_back_by_hand();
    // The source has gone back as well: nobody is told, and what it serves next begins.
    let mut back = fleet.record.clone();
    fleet.record = offered(&fleet, 1, false).expect("it is noted");
    assert_eq!((&fleet.record.stage, &fleet.record.rolled_back), (&WaveStage::Applied, &None));
    assert!(offered(&fleet, 2, false).is_some());
    // It serves a third one.
    std::mem::swap(&mut fleet.record, &mut back);
    fleet.record = offered(&fleet, 3, false).expect("another one begins");
    assert_eq!(fleet.record.rolled_back, None);
    fleet.record.stage = WaveStage::Applied;
    assert!(offered(&fleet, 2, false).is_some());
}

#[test]
fn a_rollback_by_hand_that_fails_on_one_node_leaves_all_with_what_they_had() {
    let mut fleet = WaveFleet::new(3, WaveSize::Nodes(3));
    fleet.until_quiet();
    fleet.record = by_hand(&fleet, 1).expect("it begins");
    (fleet.decisions, fleet.since, fleet.bad) = (100, fleet.now, vec![name("n03")]);
    fleet.until_quiet();
    assert!(matches!(fleet.record.stage, WaveStage::Back(_)));
    assert_eq!(fleet.having(&version(2)).len(), 3);
    let offer = WaveOffer { by_hand: true, ..offer(1) };
    assert_eq!(decided(&fleet, &offer, false), None, "once is enough");
}

#[test]
fn there_is_nothing_to_wait_for_when_a_source_has_served_nothing() {
    let fleet = WaveFleet::new(2, WaveSize::Nodes(1));
    assert!(is_settled(&fleet.members, None, None, false), "it has never answered");
    assert!(!is_settled(&fleet.members, None, Some(&offer(1)), false), "that is about to begin");
    let mut left_out = fleet.members.clone();
    left_out.values_mut().for_each(|it| it.presence = MemberPresence::LeftOut);
    assert!(is_settled(&left_out, None, Some(&offer(1)), false), "nobody could take it");
}

/// Whoever waits for what is offered waits as long as the conductor has something to decide, or
/// nodes have something to do.
#[test]
fn a_fleet_has_settled_when_nothing_is_decided_any_more() {
    let mut applied = WaveFleet::new(3, WaveSize::Nodes(3));
    let storing = WaveFleet::new(3, WaveSize::Nodes(3));
    let in_wave = in_the_second_wave();
    applied.until_quiet();
    let mut back = WaveFleet::new(3, WaveSize::Nodes(3));
    back.bad = vec![name("n02")];
    back.until_quiet();
    let mut going_back = WaveFleet::new(3, WaveSize::Nodes(3));
    going_back.bad = vec![name("n02")];
    going_back.until_quiet();
    going_back.member("n03").copy.applied = Some(version(2));
    let fleets = [
        ("storing", storing, false),
        ("in a wave", in_wave, false),
        ("applied", applied, true),
        ("rolled back by hand", rolled_back_by_hand(), true),
        ("back", back, true),
        ("going back", going_back, false),
    ];
    for (stage, fleet, rests) in fleets {
        assert_eq!(is_settled(&fleet.members, Some(&fleet.record), None, false), rests, "{stage}");
        for (byte, asks) in [(1, false), (1, true), (2, false), (2, true), (3, false)] {
            let is_settled =
                is_settled(&fleet.members, Some(&fleet.record), Some(&offer(byte)), asks);
            // What is only noted under another name moves nobody.
            let moves = |next: &WaveRecord| next.stage != WaveStage::Applied;
            let begins = offered(&fleet, byte, asks).is_some_and(|next| moves(&next));
            assert_eq!(is_settled, rests && !begins, "{stage}, version {byte}, asks: {asks}");
        }
    }
}
