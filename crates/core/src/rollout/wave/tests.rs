mod by_hand;

use super::*;
use crate::{fleet::Term, rollout::Digest};
use std::sync::LazyLock;

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn version(byte: u8) -> Version {
    Version {
        label: Some(format!("v{byte}")),
        digest: Digest([byte; 32]),
        secrets: None,
        rotation: 0,
    }
}

fn number(counter: u64) -> Number {
    Number { term: Term { number: 1, master: name("n01") }, counter }
}

/// A fleet whose nodes do at once what the record lets them do, unless they are told otherwise.
struct WaveFleet {
    members: BTreeMap<Name, WaveMember>,
    record: WaveRecord,
    now: Mono,
    since: Mono,
    decisions: u64,
    /// On which nodes the version does not work.
    bad: Vec<Name>,
}

const PAUSE: Duration = Duration::from_secs(30);

static CONDUCTOR: LazyLock<Name> = LazyLock::new(|| name("n01"));

fn view_of(
    members: &BTreeMap<Name, WaveMember>,
    now: Mono,
    number: Number,
    since: Mono,
) -> WaveView<'_> {
    WaveView { now, conductor: &CONDUCTOR, number, members, pause: PAUSE, since }
}

impl WaveFleet {
    /// `n01` … with version 1, about to get version 2; the first one is the master.
    fn new(nodes: u32, size: WaveSize) -> WaveFleet {
        let present = WaveMember {
            presence: MemberPresence::Present,
            copy: ProfileCopy {
                applied: Some(version(1)),
                retrieved: Some(version(1)),
                failed: None,
                pending: None,
            },
        };
        let members: BTreeMap<Name, WaveMember> =
            (1..=nodes).map(|n| (name(&format!("n{n:02}")), present.clone())).collect();
        let (now, since) = (Mono(0), Mono(0));
        let view = view_of(&members, now, number(1), since);
        let record = WaveRecord::begin(&view, version(2), Some(version(1)), size, &name("n01"));
        WaveFleet { members, record, now, since, decisions: 1, bad: Vec::new() }
    }

    fn member(&mut self, node: &str) -> &mut WaveMember {
        self.members.get_mut(&name(node)).expect("it is there")
    }

    /// Every node that is there does what the record says.
    fn work(&mut self) {
        for (node, member) in &mut self.members {
            if member.presence != MemberPresence::Present {
                continue;
            }
            if self.record.stage == WaveStage::Storing {
                member.copy.retrieved = Some(self.record.version.clone());
            }
            let Some(version) = self.record.version_for(node) else { continue };
            if self.bad.contains(node) && *version == self.record.version {
                let (begun, failure) = (self.record.begun.clone(), "it does not work".to_owned());
                member.copy.failed = Some(FailedAttempt { begun, failure });
            } else {
                member.copy.applied = Some(version.clone());
            }
        }
    }

    fn decide(&mut self) -> bool {
        let number = number(self.decisions + 1);
        let WaveFleet { members, now, since, .. } = self;
        let view = view_of(members, *now, number, *since);
        let Some(next) = self.record.decide(&view) else { return false };
        assert!(next.number > self.record.number);
        assert_eq!(next.begun, self.record.begun);
        (self.record, self.decisions, self.since) = (next, self.decisions + 1, self.now);
        true
    }

    /// Until nothing happens any more, but for the passing of time.
    fn until_quiet(&mut self) {
        self.work();
        while self.decide() {
            self.work();
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.after(time);
        self.until_quiet();
    }

    fn having(&self, wanted: &Version) -> Vec<String> {
        let has = |it: &WaveMember| it.copy.applied.as_ref() == Some(wanted);
        self.members.iter().filter(|(_, it)| has(it)).map(|(name, _)| name.to_string()).collect()
    }
}

#[test]
fn waves_are_rounded_up_by_name_the_master_last() {
    let fleet = WaveFleet::new(11, WaveSize::Percent(10));
    let sizes: Vec<usize> = fleet.record.waves.iter().map(Vec::len).collect();
    assert_eq!(sizes, [2, 2, 2, 2, 2, 1]);
    assert_eq!(fleet.record.waves[0], [name("n02"), name("n03")]);
    assert_eq!(fleet.record.waves[5], [name("n01")]);
    assert_eq!(WaveSize::Percent(0).of(7), 1);
    assert_eq!(WaveSize::Nodes(0).of(7), 1);
    assert_eq!(WaveSize::Percent(100).of(7), 7);
}

#[test]
fn nobody_begins_before_all_have_it_on_their_disks() {
    let mut fleet = WaveFleet::new(3, WaveSize::Nodes(1));
    for node in ["n01", "n02"] {
        fleet.member(node).copy.retrieved = Some(version(2));
    }
    assert!(!fleet.decide());
    assert_eq!(fleet.record.version_for(&name("n02")), Some(&version(1)));
    // One that is lost meanwhile is not waited for.
    fleet.member("n03").presence = MemberPresence::Lost;
    assert!(fleet.decide());
    assert_eq!(fleet.record.stage, WaveStage::Wave { at: 0 });
}

#[test]
fn a_wave_waits_for_the_one_before_and_for_the_pause() {
    let mut fleet = WaveFleet::new(3, WaveSize::Nodes(1));
    fleet.until_quiet();
    assert_eq!(fleet.having(&version(2)), ["n02"]);
    assert_eq!(fleet.record.stage, WaveStage::Resting { next: 1 });
    fleet.pass(Duration::from_secs(29));
    assert_eq!(fleet.having(&version(2)), ["n02"]);
    fleet.pass(Duration::from_secs(1));
    assert_eq!(fleet.having(&version(2)), ["n02", "n03"]);
    fleet.pass(PAUSE);
    assert_eq!(fleet.record.stage, WaveStage::Applied);
    assert_eq!(fleet.having(&version(2)), ["n01", "n02", "n03"]);
}

#[test]
fn one_failure_brings_all_back() {
    let mut fleet = WaveFleet::new(5, WaveSize::Nodes(2));
    fleet.bad = vec![name("n04")];
    fleet.until_quiet();
    assert_eq!(fleet.having(&version(2)), ["n02", "n03"]);
    fleet.pass(PAUSE);
    let failure = Some("it does not work".to_owned());
    assert_eq!(fleet.record.stage, WaveStage::Back(WaveFailure { node: name("n04"), failure }));
    assert_eq!(fleet.having(&version(1)).len(), 5);
    assert!(!fleet.record.is_under_way(&fleet.members));
    assert_eq!(fleet.record.refused(), Some(&version(2)));
    // Nothing of it comes back.
    fleet.pass(PAUSE * 10);
    assert_eq!(fleet.having(&version(1)).len(), 5);
}

#[test]
fn a_failure_of_an_earlier_attempt_does_not_count() {
    let mut fleet = WaveFleet::new(2, WaveSize::Nodes(1));
    let failure = "once".to_owned();
    fleet.member("n02").copy.failed = Some(FailedAttempt { begun: number(0), failure });
    fleet.until_quiet();
    assert_eq!(fleet.record.stage, WaveStage::Resting { next: 1 });
}

/// Four nodes, one at a time; n02 has it, and n03 is about to.
fn in_the_second_wave() -> WaveFleet {
    let mut fleet = WaveFleet::new(4, WaveSize::Nodes(1));
    fleet.until_quiet();
    fleet.now = fleet.now.after(PAUSE);
    assert!(fleet.decide());
    assert_eq!(fleet.record.stage, WaveStage::Wave { at: 1 });
    assert!(!fleet.decide(), "n03 has not answered yet");
    fleet
}

#[test]
fn a_node_lost_in_its_own_wave_is_a_failure() {
    let mut fleet = in_the_second_wave();
    fleet.member("n03").presence = MemberPresence::Lost;
    assert!(fleet.decide());
    let failure = WaveFailure { node: name("n03"), failure: None };
    assert_eq!(fleet.record.stage, WaveStage::Back(failure));
}

#[test]
fn a_node_lost_before_its_wave_is_left_out_of_it() {
    let mut fleet = WaveFleet::new(4, WaveSize::Nodes(1));
    fleet.until_quiet();
    fleet.member("n03").presence = MemberPresence::Lost;
    fleet.pass(PAUSE);
    assert_eq!(fleet.record.stage, WaveStage::Resting { next: 2 });
    // Back in the middle it is served what is applied, and the rest at the end.
    fleet.member("n03").presence = MemberPresence::Present;
    assert_eq!(fleet.record.version_for(&name("n03")), Some(&version(1)));
    fleet.pass(PAUSE);
    fleet.pass(PAUSE);
    assert_eq!(fleet.record.stage, WaveStage::Applied);
    assert_eq!(fleet.record.version_for(&name("n03")), Some(&version(2)));
}

#[test]
fn a_node_lost_in_another_wave_is_none_and_neither_is_one_that_ends() {
    let mut fleet = in_the_second_wave();
    fleet.member("n02").presence = MemberPresence::Lost;
    assert!(!fleet.decide());
    fleet.member("n03").presence = MemberPresence::Ended;
    assert!(fleet.decide());
    assert_eq!(fleet.record.stage, WaveStage::Resting { next: 2 });
}

#[test]
fn half_of_the_nodes_or_less_decide_nothing() {
    let mut fleet = in_the_second_wave();
    fleet.member("n03").presence = MemberPresence::Lost;
    fleet.member("n04").presence = MemberPresence::Lost;
    assert!(!fleet.decide());
    // Those that were shut down do not count.
    fleet.member("n04").presence = MemberPresence::Ended;
    assert!(fleet.decide());
}

#[test]
fn who_comes_late_gets_what_is_applied_and_never_what_failed() {
    let mut fleet = WaveFleet::new(3, WaveSize::Nodes(1));
    fleet.until_quiet();
    let late = name("n09");
    assert_eq!(fleet.record.version_for(&late), Some(&version(1)));
    fleet.bad = vec![name("n03")];
    fleet.pass(PAUSE);
    assert_eq!(fleet.record.version_for(&late), Some(&version(1)));
    let mut fleet = WaveFleet::new(3, WaveSize::Nodes(3));
    fleet.until_quiet();
    assert_eq!(fleet.record.stage, WaveStage::Applied);
    assert_eq!(fleet.record.version_for(&late), Some(&version(2)));
}

#[test]
fn a_drained_node_is_in_no_wave() {
    let mut fleet = WaveFleet::new(3, WaveSize::Nodes(1));
    fleet.member("n03").presence = MemberPresence::LeftOut;
    fleet.until_quiet();
    // It was drained after the record was made: its wave goes on without it.
    fleet.pass(PAUSE);
    fleet.pass(PAUSE);
    assert_eq!(fleet.record.stage, WaveStage::Applied);
    let view = view_of(&fleet.members, fleet.now, number(90), fleet.since);
    let next = WaveRecord::begin(&view, version(3), None, WaveSize::Nodes(1), &name("n01"));
    assert_eq!(next.waves.concat(), [name("n02"), name("n01")]);
}

#[test]
fn the_next_conductor_goes_on_from_the_record() {
    let mut fleet = WaveFleet::new(4, WaveSize::Nodes(1));
    fleet.until_quiet();
    // The master, which is last, is lost between two waves.
    fleet.member("n01").presence = MemberPresence::Lost;
    let term = Term { number: 2, master: name("n02") };
    fleet.now = fleet.now.after(PAUSE);
    let view = view_of(&fleet.members, fleet.now, Number { term, counter: 1 }, fleet.since);
    let next = fleet.record.decide(&view).expect("it goes on");
    assert_eq!(next.stage, WaveStage::Wave { at: 1 });
    assert!(next.number > fleet.record.number);
}

#[test]
fn a_hundred_nodes_bad_from_the_fifth_wave_on_all_come_back() {
    let mut fleet = WaveFleet::new(100, WaveSize::Percent(10));
    fleet.bad = fleet.record.waves[4..].concat();
    fleet.until_quiet();
    for wave in 1..=4 {
        assert_eq!(fleet.having(&version(2)).len(), wave * 10);
        fleet.pass(PAUSE);
    }
    assert!(matches!(fleet.record.stage, WaveStage::Back(_)));
    assert_eq!(fleet.having(&version(1)).len(), 100);
}

fn offer(byte: u8) -> WaveOffer {
    WaveOffer { version: version(byte), asked: None, by_hand: false }
}

/// What the conductor of a fleet decides when its source serves this.
fn offered(fleet: &WaveFleet, byte: u8, asks: bool) -> Option<WaveRecord> {
    decided(fleet, &offer(byte), asks)
}

fn decided(fleet: &WaveFleet, offer: &WaveOffer, asks: bool) -> Option<WaveRecord> {
    let view = view_of(&fleet.members, fleet.now, number(100), fleet.since);
    let by = (WaveSize::Nodes(2), &*CONDUCTOR);
    conduct(&view, Some(&fleet.record), Some(offer), asks, None, by)
}

#[test]
fn another_version_begins_once_nothing_is_under_way() {
    let mut fleet = WaveFleet::new(3, WaveSize::Nodes(3));
    fleet.work();
    let next = offered(&fleet, 3, false).expect("the version under way goes on");
    assert_eq!((next.version, next.stage), (version(2), WaveStage::Wave { at: 0 }));
    fleet.until_quiet();
    assert_eq!(fleet.record.stage, WaveStage::Applied);
    assert_eq!(offered(&fleet, 2, false), None, "it has that");
    let next = offered(&fleet, 3, false).expect("another one begins");
    assert_eq!((next.before, next.stage), (Some(version(2)), WaveStage::Storing));
    assert_eq!((next.begun, next.waves.len()), (number(100), 2));
    fleet.member("n02").presence = MemberPresence::Lost;
    fleet.member("n03").presence = MemberPresence::Lost;
    assert_eq!(offered(&fleet, 3, false), None, "half of the nodes or less begin nothing");
}

#[test]
fn what_has_failed_begins_again_when_somebody_asks_or_the_source_has_served_another() {
    let mut fleet = WaveFleet::new(3, WaveSize::Nodes(3));
    fleet.bad = vec![name("n02")];
    fleet.until_quiet();
    assert!(matches!(fleet.record.stage, WaveStage::Back(_)));
    assert_eq!(offered(&fleet, 2, false), None);
    let again = offered(&fleet, 2, true).expect("somebody asks");
    assert_eq!((again.version, again.before), (version(2), Some(version(1))));
    assert!(again.begun > fleet.record.begun, "earlier answers do not count");
    // The source has gone back: all have that already.
    fleet.record = offered(&fleet, 1, false).expect("it is noted");
    assert_eq!((&fleet.record.version, &fleet.record.stage), (&version(1), &WaveStage::Applied));
    assert_eq!(offered(&fleet, 2, false).expect("it may come again").stage, WaveStage::Storing);
}

#[test]
fn a_version_that_was_lost_with_its_only_holder_is_replaced() {
    let mut fleet = WaveFleet::new(3, WaveSize::Nodes(1));
    fleet.member("n01").copy.retrieved = Some(version(2));
    assert_eq!(offered(&fleet, 3, false), None, "somebody has it");
    fleet.member("n01").presence = MemberPresence::Lost;
    assert_eq!(offered(&fleet, 2, false), None, "its source serves it again");
    let next = offered(&fleet, 3, false).expect("nobody can get it any more");
    assert_eq!((next.version, next.before), (version(3), Some(version(1))));
}

#[test]
fn a_node_that_cannot_go_back_does_not_hold_up_the_next_version() {
    let mut fleet = WaveFleet::new(3, WaveSize::Nodes(3));
    fleet.bad = vec![name("n02")];
    fleet.until_quiet();
    fleet.member("n03").copy.applied = Some(version(2));
    assert_eq!(offered(&fleet, 3, false), None, "it goes back");
    fleet.member("n03").copy.pending = Some("it does not".to_owned());
    assert!(offered(&fleet, 3, false).is_some());
}

#[test]
fn a_delivery_is_read_as_it_was_written_and_shows_nothing() {
    use crate::{
        rollout::{Content, SecretValue},
        text::Secret,
    };
    let value = Secret::new("hush");
    let secret = SecretValue { value, content_type: None, version_id: None };
    let content = Content {
        content_type: "text/plain".to_owned(),
        body: b"caf\xc3\xa9 \xff".to_vec(),
        secrets: BTreeMap::from([("key".to_owned(), secret)]),
    };
    let delivery = ProfileDelivery::new(name("app"), version(2), content.clone());
    let text = serde_json::to_string(&delivery).expect("JSON");
    let read: ProfileDelivery = serde_json::from_str(&text).expect("read");
    assert_eq!(read.content(), content);
    let shown = format!("{read:?}");
    assert!(!shown.contains("hush") && !shown.contains("caf"), "{shown}");
}

#[test]
fn facts_of_waves_that_say_less_are_read() {
    let none: WaveFacts = serde_json::from_str("{}").expect("an older node");
    assert!(none.is_empty());
    assert_eq!(serde_json::to_string(&none).expect("JSON"), "{}");
    let copy: ProfileCopy = serde_json::from_str("{\"later\": 1}").expect("a later node");
    assert_eq!(copy, ProfileCopy::default());
}

/// A conductor of this version stands between two of a later one.
#[test]
fn what_a_later_version_has_added_stays_with_the_record_to_its_end() {
    let mut fleet = WaveFleet::new(2, WaveSize::Nodes(1));
    let mut text = serde_json::to_value(&fleet.record).expect("JSON");
    text["colour"] = serde_json::json!("red");
    fleet.record = serde_json::from_value(text.clone()).expect("a record");
    assert_eq!(serde_json::to_value(&fleet.record).expect("JSON"), text);
    fleet.until_quiet();
    fleet.pass(PAUSE);
    assert_eq!(fleet.record.stage, WaveStage::Applied);
    assert_eq!(serde_json::to_value(&fleet.record).expect("JSON")["colour"], "red");
}
