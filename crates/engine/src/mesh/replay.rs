//! Which numbers of one sender were there already: the latest so many, each by a bit.

/// Datagrams overtake each other by no more than this.
const WIDTH: u64 = 128;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Window {
    /// One above the highest number.
    end: u64,
    /// Bit n: the number n below the highest.
    seen: u128,
}

impl Window {
    /// `true`: it is the first time, and not too long after later ones.
    pub(crate) fn take(&mut self, number: u64) -> bool {
        let Some(end) = number.checked_add(1) else { return false };
        if end > self.end {
            let ahead = end - self.end;
            self.seen = if ahead >= WIDTH { 0 } else { self.seen << ahead };
            self.seen |= 1;
            self.end = end;
            return true;
        }
        let behind = self.end - end;
        let bit = 1u128.checked_shl(u32::try_from(behind).unwrap_or(u32::MAX)).unwrap_or(0);
        let is_new = bit != 0 && self.seen & bit == 0;
        self.seen |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_number_is_taken_once_and_a_very_late_one_never() {
        let mut window = Window::default();
        assert!(window.take(0) && !window.take(0));
        assert!(window.take(5) && window.take(3) && !window.take(3));
        assert!(window.take(1000));
        assert!(!window.take(5) && !window.take(4));
        assert!(window.take(1000 - WIDTH + 1) && !window.take(1000 - WIDTH));
        assert!(!window.take(u64::MAX));
    }

    proptest! {
        #[test]
        fn no_number_is_taken_twice(numbers in proptest::collection::vec(0..400u64, 0..600)) {
            let (mut window, mut taken) = (Window::default(), BTreeSet::new());
            for number in numbers {
                let highest = taken.last().copied().unwrap_or(0);
                let near = number + WIDTH > highest;
                let is_new = !taken.contains(&number);
                prop_assert_eq!(window.take(number), is_new && near);
                if near {
                    taken.insert(number);
                }
            }
        }
    }
}
