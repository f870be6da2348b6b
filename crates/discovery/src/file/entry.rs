//! One line of a file: an instance, how well it is, and until when that holds.

use mainstay_core::discovery::{Instance, Registration, Standing};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// An entry that nobody has renewed for so long is dropped by whoever writes next.
const FORGOTTEN: Duration = Duration::from_secs(24 * 3600);
/// So much of a note is kept.
const NOTE: usize = 1 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    #[serde(flatten)]
    pub(super) instance: Instance,
    standing: Standing,
    note: String,
    /// Times are milliseconds since the epoch: several processes and boots share them.
    since: u64,
    expires: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forget_critical_after: Option<u64>,
}

impl Entry {
    pub(super) fn new(registration: &Registration, standing: Standing, node: &str) -> Entry {
        let Registration { id, service, address, port, tags, meta, ttl, .. } = registration.clone();
        let now = now();
        Entry {
            instance: Instance { id, name: service, address, port, tags, meta, node: node.into() },
            standing,
            note: String::new(),
            since: now,
            expires: now.saturating_add(milliseconds(ttl)),
            forget_critical_after: registration.deregister_critical_after.map(milliseconds),
        }
    }

    pub(super) fn tell(&mut self, standing: Standing, note: &str, ttl: Duration) {
        let now = now();
        if self.standing != standing {
            (self.standing, self.since) = (standing, now);
        }
        note[..note.floor_char_boundary(NOTE)].clone_into(&mut self.note);
        self.expires = now.saturating_add(milliseconds(ttl));
    }

    pub(super) fn is_passing(&self, now: u64) -> bool {
        self.standing == Standing::Passing && now < self.expires
    }

    pub(super) fn runs_out_in(&self, now: u64) -> Duration {
        Duration::from_millis(self.expires.saturating_sub(now))
    }

    /// Whether it has been critical, or not heard of, for longer than it is kept.
    pub(super) fn is_forgotten(&self, now: u64) -> bool {
        let past = |since: u64, after: u64| now >= since.saturating_add(after);
        let critical = |after| self.standing == Standing::Critical && past(self.since, after);
        past(self.expires, self.forget_critical_after.unwrap_or(milliseconds(FORGOTTEN)))
            || self.forget_critical_after.is_some_and(critical)
    }
}

pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, milliseconds)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn entry(standing: Standing, after: Option<Duration>) -> Entry {
        let registration = Registration {
            id: "web-1".into(),
            service: "web".into(),
            address: "10.0.0.1".into(),
            port: 80,
            tags: vec![],
            meta: BTreeMap::new(),
            ttl: Duration::from_secs(10),
            heartbeat: Duration::from_secs(3),
            deregister_critical_after: after,
            enable_tag_override: false,
        };
        Entry::new(&registration, standing, "here")
    }

    #[test]
    fn an_entry_passes_until_its_ttl_has_run_out() {
        let passing = entry(Standing::Passing, None);
        assert!(passing.is_passing(passing.expires - 1));
        assert!(!passing.is_passing(passing.expires));
        assert!(!entry(Standing::Warning, None).is_passing(passing.since));
    }

    #[test]
    fn an_entry_is_forgotten_after_a_day_or_when_it_says_so() {
        let minute = Duration::from_secs(60);
        let silent = entry(Standing::Passing, None);
        assert!(!silent.is_forgotten(silent.expires + 23 * 3_600_000));
        assert!(silent.is_forgotten(silent.expires + 24 * 3_600_000));
        let said = entry(Standing::Passing, Some(minute));
        assert!(!said.is_forgotten(said.expires));
        assert!(said.is_forgotten(said.expires + 60_000));
        let mut ill = entry(Standing::Critical, Some(minute));
        ill.tell(Standing::Critical, "", minute * 9);
        assert!(!ill.is_forgotten(ill.since + 59_000));
        assert!(ill.is_forgotten(ill.since + 60_000));
    }
}
