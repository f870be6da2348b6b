//! What a source has said at least once: level-triggered conditions ask here.
//!
//! It is kept with the source, one bit an event, so that a journal record of a job stays as small
//! as the job and a condition needs no memory of its own.

use crate::{
    event::{Event, Kind},
    plan::Awaited,
    signal::Signal,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct History(u16);

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
fn bit(event: Awaited) -> Option<u16> {
    let place = match event {
        Awaited::Startup => 0,
        Awaited::ExitSuccess => 1,
        Awaited::ExitFailed => 2,
        Awaited::Healthy => 3,
        Awaited::Unhealthy => 4,
        Awaited::Changed => 5,
        Awaited::Stopping => 6,
        Awaited::Stopped => 7,
        Awaited::EnterMaintenance => 8,
        Awaited::ExitMaintenance => 9,
        Awaited::TimerExpired => 10,
        Awaited::Signal(_) => return None,
    };
    Some(1 << place)
}

fn signal_bit(signal: Signal) -> u64 {
    u32::try_from(signal.number() - 1).ok().and_then(|place| 1u64.checked_shl(place)).unwrap_or(0)
}

/// The event in the words of a condition; `None` for what is only told to observers.
pub(crate) fn awaited(event: &Event) -> Option<Awaited> {
    match &event.kind {
        Kind::Startup => Some(Awaited::Startup),
        Kind::ExitSuccess { .. } => Some(Awaited::ExitSuccess),
        Kind::ExitFailed { .. } => Some(Awaited::ExitFailed),
        Kind::Healthy => Some(Awaited::Healthy),
        Kind::Unhealthy => Some(Awaited::Unhealthy),
        Kind::Changed { .. } => Some(Awaited::Changed),
        Kind::Stopping => Some(Awaited::Stopping),
        Kind::Stopped => Some(Awaited::Stopped),
        Kind::TimerExpired => Some(Awaited::TimerExpired),
        Kind::EnterMaintenance => Some(Awaited::EnterMaintenance),
        Kind::ExitMaintenance => Some(Awaited::ExitMaintenance),
        Kind::Signal { signal } => Some(Awaited::Signal(*signal)),
        Kind::Check { .. }
        | Kind::Enabled
        | Kind::Disabled
        | Kind::Reloaded { .. }
        | Kind::State { .. }
        | Kind::AgentRestarted { .. }
        | Kind::Upgraded { .. }
        | Kind::LogGap { .. }
        | Kind::StrayKilled { .. } => None,
    }
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
