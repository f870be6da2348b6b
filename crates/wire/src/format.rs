//! The format of what one binary leaves for another: journal, plan.json, link and hand-over carry
//! its number, and the lowest number of a binary that can read it.
//!
//! | number | lowest | what |
//! |---|---|---|
//! | 2 | (2) | all or nothing: it says no lowest number, and binaries of it read no other |
//! | 3 | 3 | the first that says what can read it |
//!
//! A new field has a default and an unknown one is passed over, so the number before stays the
//! lowest. Only what an older binary would get wrong raises it.

use serde::{Deserialize, Serialize};

/// The number of this binary.
pub const NUMBER: u32 = 3;
/// The lowest number that can read what this binary writes.
pub const LOWEST: u32 = 3;
/// The lowest number that this binary can read.
pub const OLDEST: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    #[serde(rename = "format")]
    pub number: u32,
    /// `None`: whoever has another number cannot read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest: Option<u32>,
}

impl Format {
    pub const OURS: Format = Format { number: NUMBER, lowest: Some(LOWEST) };

    /// Whether this binary can read it as a file.
    #[must_use]
    pub fn is_readable(self) -> bool {
        self.is_readable_since(OLDEST)
    }

    /// The same for what is understood since another number.
    #[must_use]
    pub fn is_readable_since(self, oldest: u32) -> bool {
        self.number >= oldest && self.lowest.unwrap_or(self.number) <= NUMBER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_is_read_both_ways_and_what_says_otherwise_is_not() {
        let read = |text: &str| serde_json::from_str::<Format>(text).expect("JSON").is_readable();
        assert!(read(r#"{"format":2}"#), "the last that says nothing");
        assert!(!read(r#"{"format":1}"#), "too old");
        assert!(read(r#"{"format":4,"lowest":3,"more":true}"#), "newer, and readable");
        assert!(!read(r#"{"format":5,"lowest":4}"#), "newer, and not readable");
        assert!(!read(r#"{"format":9}"#), "all or nothing");
        let ours = serde_json::to_string(&Format::OURS).expect("JSON");
        assert!(read(&ours), "{ours}");
    }
}
