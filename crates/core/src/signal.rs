//! Signals by their Linux names and numbers.

use crate::text;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{fmt, str::FromStr};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(i32);

const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];
/// What glibc calls SIGRTMIN; the two signals below it are its own.
const RTMIN: i32 = 34;
const RTMAX: i32 = 64;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a signal (for example SIGTERM, HUP, RTMIN+3 or 15)")]
pub struct UnknownSignal(String);

impl Signal {
    pub const HUP: Signal = Signal(1);
    pub const INT: Signal = Signal(2);
    pub const QUIT: Signal = Signal(3);
    pub const KILL: Signal = Signal(9);
    pub const USR1: Signal = Signal(10);
    pub const USR2: Signal = Signal(12);
    pub const TERM: Signal = Signal(15);
    pub const WINCH: Signal = Signal(28);
    /// systemd's way to ask an init in a container to halt.
    pub const HALT: Signal = Signal(RTMIN + 3);

    #[must_use]
    pub fn from_number(number: i32) -> Option<Signal> {
        (1..=RTMAX).contains(&number).then_some(Signal(number))
    }

    #[must_use]
    pub fn number(self) -> i32 {
        self.0
    }
}

impl FromStr for Signal {
    type Err = UnknownSignal;
    fn from_str(text: &str) -> Result<Signal, UnknownSignal> {
        let unknown = || UnknownSignal(text.to_owned());
        if let Ok(number) = text.parse::<i32>() {
            return Signal::from_number(number).ok_or_else(unknown);
        }
        let upper = text.to_ascii_uppercase();
        let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
        if let Some(offset) = bare.strip_prefix("RTMIN") {
            let offset = if offset.is_empty() { Ok(0) } else { offset.parse::<i32>() };
            return offset
                .ok()
                .filter(|n| (0..=RTMAX - RTMIN).contains(n))
                .map(|n| Signal(RTMIN + n))
                .ok_or_else(unknown);
        }
        (1i32..)
            .zip(NAMES)
            .find(|(_, name)| *name == bare)
            .map(|(n, _)| Signal(n))
            .ok_or_else(unknown)
    }
}

impl Serialize for Signal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Signal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Signal, D::Error> {
        text::parse(deserializer, "a signal", str::parse)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match usize::try_from(self.0 - 1).ok().and_then(|index| NAMES.get(index)) {
            Some(name) => write!(f, "SIG{name}"),
            None if self.0 >= RTMIN => write!(f, "SIGRTMIN+{}", self.0 - RTMIN),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_written_in_a_form_that_reads_back() {
        for number in 1..=RTMAX {
            let signal = Signal::from_number(number).expect("in range");
            assert_eq!(signal.to_string().parse(), Ok(signal));
        }
    }

    #[test]
    fn people_may_write_a_signal_in_any_usual_way() {
        for text in ["SIGTERM", "TERM", "term", "15"] {
            assert_eq!(text.parse(), Ok(Signal::TERM));
        }
        assert!("SIGNOPE".parse::<Signal>().is_err());
        assert!("0".parse::<Signal>().is_err());
        assert!("RTMIN+31".parse::<Signal>().is_err());
    }
}
