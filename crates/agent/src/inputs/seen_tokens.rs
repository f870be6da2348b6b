//! Which of the keeper's tokens are in our hands already.
//!
//! The keeper delivers a signal or a request again until it hears `Taken`. An agent that dies
//! between journal and `Taken` leaves the token in the journal, so that the next one does not act
//! on it a second time.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Far more than can be under way at a time.
const KEPT: usize = 256;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SeenTokens(VecDeque<u64>);

impl SeenTokens {
    pub(crate) fn contains(&self, token: u64) -> bool {
        self.0.contains(&token)
    }

    pub(crate) fn add(&mut self, token: u64) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_tokens_are_known_in_any_order() {
        let mut seen = SeenTokens::default();
        [7, 3].into_iter().chain(100..100 + KEPT as u64 - 1).for_each(|token| seen.add(token));
        assert!(seen.contains(3) && seen.contains(100));
        assert!(!seen.contains(7) && !seen.contains(5));
    }
}
