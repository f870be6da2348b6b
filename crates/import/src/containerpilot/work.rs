//! How much a template may do in all. Each step of it is bounded by itself, but a few lines of loops,
//! templates that call templates and texts that grow can ask for more steps than anybody waits for.
//!
//! A step costs what it makes, something for itself, and a share of the largest value so far: any
//! step may look through that, as a comparison does.

use super::functions::failed;
use gotmpl::TemplateError;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Far more than a file of the largest size needs.
const ALL: usize = 64 << 20;
const STEP: usize = 64;
const ITEM: usize = 8;
const SHARE: usize = 64;
/// Actions without a value, such as a template that is called.
pub(super) const MOST_ACTIONS: u64 = 2_000_000;
pub(super) const TOO_MUCH: &str = "the template does too much";

/// What a template may still do.
#[derive(Debug)]
pub(super) struct WorkBudget {
    left: AtomicUsize,
    largest: AtomicUsize,
}

impl WorkBudget {
    /// `largest`: of what is there before the first step.
    pub(super) fn new(largest: usize) -> WorkBudget {
        WorkBudget { left: AtomicUsize::new(ALL), largest: AtomicUsize::new(largest) }
    }

    /// A step that makes text of this size.
    pub(super) fn text(&self, size: usize) -> Result<(), TemplateError> {
        let largest = self.largest.fetch_max(size, Relaxed).max(size);
        let cost = size.saturating_add(STEP + largest / SHARE);
        match self.left.try_update(Relaxed, Relaxed, |left| left.checked_sub(cost)) {
            Ok(_) => Ok(()),
            Err(_) => failed(TOO_MUCH),
        }
    }

    /// A step that makes a list of at most so many items.
    pub(super) fn items(&self, count: usize) -> Result<(), TemplateError> {
        self.text(count.saturating_mul(ITEM))
    }
}
