//! A figure: one line of the table, what every peer needed for the same work, and what it must cost.

use std::collections::BTreeMap;
use std::fmt;

use crate::peer::Who;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Milliseconds,
    Megabytes,
    PerSecond,
    KilobytesPerSecond,
    Count,
}

impl Unit {
    /// Values are kept in seconds, bytes and plain counts.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Unit::Seconds => format!("{value:.2} s"),
            Unit::Milliseconds => format!("{:.2} ms", value * 1e3),
            Unit::Megabytes => format!("{:.1} MB", value / 1e6),
            Unit::PerSecond => format!("{value:.1} /s"),
            Unit::KilobytesPerSecond => format!("{:.1} KB/s", value / 1e3),
            Unit::Count => format!("{value:.2}"),
        }
    }
}

/// What a figure of Mainstay is held against.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    Times(Who, f64),
    /// So many times the peer, and so much more.
    TimesAnd(Who, f64, f64),
    /// At least this share of what the peer does: of a rate more is better.
    Share(Who, f64),
    /// So much more than the peer, in the figure's own measure.
    Over(Who, f64),
    AtMost(f64),
}

#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub id: &'static str,
    pub work: String,
    pub unit: Unit,
    pub values: BTreeMap<Who, f64>,
    pub bounds: Vec<Bound>,
}

/// One bound and how it was met.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    pub ratio: Option<f64>,
    pub actual: String,
    pub target: String,
    pub met: bool,
}

impl Figure {
    pub(crate) fn new(id: &'static str, work: impl Into<String>, unit: Unit) -> Figure {
        Figure { id, work: work.into(), unit, values: BTreeMap::new(), bounds: Vec::new() }
    }

    pub(crate) fn bound(mut self, bound: Bound) -> Figure {
        self.bounds.push(bound);
        self
    }

    pub(crate) fn set(&mut self, who: Who, value: Option<f64>) {
        if let Some(value) = value {
            self.values.insert(who, value);
        }
    }

    pub(crate) fn show(&self, who: Who) -> String {
        self.values.get(&who).map_or_else(|| "–".to_owned(), |value| self.unit.show(*value))
    }

    /// The bounds for which everything was measured.
    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        self.bounds.iter().filter_map(|bound| self.verdict(*bound)).collect()
    }

    fn verdict(&self, bound: Bound) -> Option<Verdict> {
        let own = *self.values.get(&Who::Mainstay)?;
        let (ratio, actual, met) = match bound {
            Bound::Times(who, limit) => {
                let ratio = own / self.values.get(&who)?;
                (Some(ratio), format!("{ratio:.2} × {who}"), ratio <= limit)
            }
            Bound::TimesAnd(who, limit, more) => {
                let peer = self.values.get(&who)?;
                let ratio = own / peer;
                (Some(ratio), format!("{ratio:.2} × {who}"), own <= peer * limit + more)
            }
            Bound::Share(who, limit) => {
                let ratio = own / self.values.get(&who)?;
                (Some(ratio), format!("{ratio:.2} × {who}"), ratio >= limit)
            }
            Bound::Over(who, limit) => {
                let over = own - self.values.get(&who)?;
                (None, format!("{who} {}{}", sign(over), self.unit.show(over.abs())), over <= limit)
            }
            Bound::AtMost(limit) => (None, String::new(), own <= limit),
        };
        Some(Verdict { ratio, actual, target: self.target(bound), met })
    }

    pub(crate) fn target(&self, bound: Bound) -> String {
        match bound {
            Bound::Times(who, limit) => format!("≤ {limit} × {who}"),
            Bound::TimesAnd(who, limit, more) => {
                format!("≤ {limit} × {who} + {}", self.unit.show(more))
            }
            Bound::Share(who, limit) => format!("≥ {limit} × {who}"),
            Bound::Over(who, limit) => format!("≤ {who} + {}", self.unit.show(limit)),
            Bound::AtMost(limit) => format!("≤ {}", self.unit.show(limit)),
        }
    }
}

fn sign(value: f64) -> &'static str {
    if value < 0.0 { "− " } else { "+ " }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.work)?;
        for who in Who::ALL {
            if self.values.contains_key(&who) {
                write!(f, " {who} {}", self.show(who))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_without_its_peer_gives_no_verdict() {
        let mut figure = Figure::new("start", "jobs up", Unit::Seconds)
            .bound(Bound::Times(Who::S6, 0.3))
            .bound(Bound::Times(Who::Runit, 0.4));
        figure.set(Who::Mainstay, Some(1.0));
        figure.set(Who::S6, Some(2.0));
        let verdicts = figure.verdicts();
        assert_eq!(verdicts.len(), 1);
        assert!(!verdicts[0].met);
        assert_eq!(verdicts[0].actual, "0.50 × s6");
    }

    #[test]
    fn a_share_is_met_by_more() {
        let mut figure = Figure::new("register", "a second", Unit::PerSecond)
            .bound(Bound::Share(Who::Floor, 0.5));
        figure.set(Who::Floor, Some(1000.0));
        for (own, met) in [(499.0, false), (500.0, true), (1500.0, true)] {
            figure.set(Who::Mainstay, Some(own));
            assert_eq!(figure.verdicts()[0].met, met, "{own}");
        }
        assert_eq!(figure.verdicts()[0].target, "≥ 0.5 × floor");
    }

    #[test]
    fn over_is_held_against_the_difference() {
        let mut figure =
            Figure::new("crash", "p50", Unit::Milliseconds).bound(Bound::Over(Who::Floor, 0.0005));
        figure.set(Who::Mainstay, Some(0.0012));
        figure.set(Who::Floor, Some(0.0008));
        assert!(figure.verdicts()[0].met);
        assert_eq!(figure.verdicts()[0].actual, "floor + 0.40 ms");
    }
}
