//! A value that many hold and few change.
//!
//! What a node says of itself is large, and most of it is what it said before. A clone of a shared
//! value is the same value, a change makes a new one, and two that are the same are known to be equal
//! without a look at them.

use serde::{Deserialize, Serialize};
use std::{ops::Deref, sync::Arc};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    #[must_use]
    pub fn new(value: T) -> Shared<T> {
        Shared(Arc::new(value))
    }

    /// They are one value, and not only equal.
    #[must_use]
    pub fn is(&self, other: &Shared<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Clone> Shared<T> {
    /// The value, to change it: for this holder alone.
    pub fn edit(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T: PartialEq> Shared<T> {
    /// Another value takes its place, unless that is equal.
    pub fn set(&mut self, value: T) {
        if *self.0 != value {
            self.0 = Arc::new(value);
        }
    }

    /// Where both are equal they become one.
    pub fn share(&mut self, with: &Shared<T>) {
        if self == with {
            self.0 = with.0.clone();
        }
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        Shared(self.0.clone())
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Shared<T>) -> bool {
        self.is(other) || self.0 == other.0
    }
}

impl<T: Eq> Eq for Shared<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_nobody_elses() {
        let mut one = Shared::new(vec![1]);
        let other = one.clone();
        assert!(one.is(&other));
        one.edit().push(2);
        assert_eq!((one.len(), other.len()), (2, 1));
        one.set(vec![1]);
        assert!(one == other && !one.is(&other));
        one.share(&other);
        assert!(one.is(&other));
        one.set(vec![1]);
        assert!(one.is(&other), "nothing has changed");
    }
}
