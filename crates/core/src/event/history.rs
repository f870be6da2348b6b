//! What a source has said at least once: level-triggered conditions ask here.
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
