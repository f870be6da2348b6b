//! What a source has said: level-triggered conditions ask here. Of a job it is what it has said in
//! its life, or in its last one while it is at rest.
//!
//! | what happens to the job | what no longer counts |
//! |---|---|
//! | it is stopped on purpose | `healthy`, `unhealthy` |
//! | a request is about to launch it | all but `stopping` and `stopped` |
//! | a launch begins its next life | everything |
//!
//! It is kept with the source, one bit an event, so that a journal record of a job stays as small
//! as the job and a condition needs no memory of its own.

use crate::{event::EventName, plan::Awaited, signal::Signal};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct History(u32);

/// The signals that the node has received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Signals(u64);

impl History {
    pub(crate) fn has(self, event: Awaited) -> bool {
        bit(event).is_some_and(|bit| self.0 & bit != 0)
    }

    pub(crate) fn note(&mut self, event: Awaited) {
        self.0 |= bit(event).unwrap_or(0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == 0
    }

    pub(crate) fn forget_health(&mut self) {
        self.retain(|event| !event.is_health());
    }

    pub(crate) fn forget_all_but_end(&mut self) {
        self.retain(EventName::ends);
    }

    /// What belongs to its end is forgotten.
    pub(crate) fn forget_end(&mut self) {
        self.retain(|event| !event.ends());
    }

    /// What another one has as well.
    pub(crate) fn merge(&mut self, other: History) {
        self.0 |= other.0;
    }

    fn retain(&mut self, keep: impl Fn(EventName) -> bool) {
        let gone = EventName::ALL.iter().filter(|event| !keep(**event));
        self.0 &= !gone.filter_map(|event| event.bit()).fold(0, |all, bit| all | bit);
    }
}

impl Signals {
    pub(crate) fn has(self, signal: Signal) -> bool {
        self.0 & signal_bit(signal) != 0
    }

    pub(crate) fn note(&mut self, signal: Signal) {
        self.0 |= signal_bit(signal);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

/// Signals have bits of their own.
fn bit(event: Awaited) -> Option<u32> {
    event.name().and_then(EventName::bit)
}

fn signal_bit(signal: Signal) -> u64 {
    u32::try_from(signal.number() - 1).ok().and_then(|place| 1u64.checked_shl(place)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signal_has_a_bit_of_its_own() {
        let mut seen = Signals::default();
        for number in 1..=64 {
            let signal = Signal::from_number(number).expect("in range");
            assert!(!seen.has(signal));
            seen.note(signal);
            assert!(seen.has(signal));
        }
    }
}
