//! Looking for those that are not there: the nodes and seeds that are written down, and whoever was
//! there and is gone. A node that is alone looks again at once.

use mainstay_core::clock::Mono;
use std::{
    collections::{BTreeSet, VecDeque},
    net::SocketAddr,
    time::Duration,
};

/// The first time to wait, which then doubles.
const SHORTEST: Duration = Duration::from_millis(100);
/// So many are asked at once.
const AT_ONCE: usize = 32;
/// Gone ones that are looked for.
const GONE: usize = 256;

#[derive(Debug)]
pub(crate) struct Search {
    written: Vec<SocketAddr>,
    gone: VecDeque<SocketAddr>,
    /// This node itself, by whatever address.
    own: BTreeSet<SocketAddr>,
    longest: Duration,
    next: Mono,
    wait: Duration,
    /// Where the next round begins.
    cursor: usize,
}

impl Search {
    pub(crate) fn new(own: SocketAddr, longest: Duration) -> Search {
        Search {
            written: Vec::new(),
            gone: VecDeque::new(),
            own: BTreeSet::from([own]),
            longest,
            next: Mono(0),
            wait: SHORTEST.min(longest),
            cursor: 0,
        }
    }

    pub(crate) fn set(&mut self, now: Mono, written: Vec<SocketAddr>) {
        if written != self.written {
            self.written = written;
            self.begin(now);
        }
    }

    /// At once, and often for a while.
    pub(crate) fn begin(&mut self, now: Mono) {
        self.next = now;
        self.wait = SHORTEST.min(self.longest);
    }

    pub(crate) fn lost(&mut self, now: Mono, at: SocketAddr) {
        if !self.written.contains(&at) && !self.gone.contains(&at) {
            if self.gone.len() == GONE {
                self.gone.pop_front();
            }
            self.gone.push_back(at);
        }
        self.begin(now);
    }

    /// It went on purpose: nobody has to look for it.
    pub(crate) fn forget(&mut self, at: SocketAddr) {
        self.gone.retain(|it| *it != at);
    }

    pub(crate) fn is_own(&mut self, at: SocketAddr) {
        self.own.insert(at);
    }

    pub(crate) fn next_due(&self) -> Mono {
        self.next
    }

    /// Whom to ask now.
    pub(crate) fn due(
        &mut self,
        now: Mono,
        is_member: impl Fn(&SocketAddr) -> bool,
    ) -> Vec<SocketAddr> {
        if now < self.next {
            return Vec::new();
        }
        self.next = now.after(self.wait);
        self.wait = (self.wait * 2).min(self.longest);
        self.gone.retain(|at| !is_member(at));
        let missing: Vec<SocketAddr> = self
            .written
            .iter()
            .chain(&self.gone)
            .filter(|at| !self.own.contains(*at) && !is_member(at))
            .copied()
            .collect();
        let from = self.cursor.checked_rem(missing.len()).unwrap_or(0);
        self.cursor = from + AT_ONCE;
        missing.iter().cycle().skip(from).take(missing.len().min(AT_ONCE)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_secs(1);

    fn address(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    fn at(milliseconds: u64) -> Mono {
        Mono(0).after(Duration::from_millis(milliseconds))
    }

    #[test]
    fn those_that_are_missing_are_asked_again_and_again_ever_less_often() {
        let mut search = Search::new(address(1), TICK);
        search.set(at(0), vec![address(1), address(2), address(3)]);
        let mut times = Vec::new();
        for now in 0..4000 {
            if !search.due(at(now), |it| *it == address(3)).is_empty() {
                times.push(now);
            }
        }
        assert_eq!(times, [0, 100, 300, 700, 1500, 2500, 3500]);
        assert!(search.due(at(9000), |_| true).is_empty());
    }

    #[test]
    fn whoever_is_gone_is_looked_for_at_once_until_it_is_back_or_went_on_purpose() {
        let mut search = Search::new(address(1), TICK);
        assert!(search.due(at(5000), |_| false).is_empty());
        search.lost(at(5001), address(7));
        assert_eq!(search.due(at(5001), |_| false), [address(7)]);
        assert!(search.due(at(6001), |_| true).is_empty());
        assert!(search.due(at(8001), |_| false).is_empty(), "it was back");
        search.lost(at(8002), address(7));
        search.forget(address(7));
        assert!(search.due(at(8002), |_| false).is_empty());
    }

    #[test]
    fn of_very_many_each_has_its_time() {
        let mut search = Search::new(address(1), TICK);
        search.set(at(0), (2..102).map(address).collect());
        let mut asked = BTreeSet::new();
        for round in 0..4 {
            let now = search.due(at(round * 2000), |_| false);
            assert!(now.len() <= AT_ONCE);
            asked.extend(now);
        }
        assert_eq!(asked.len(), 100);
    }
}
