//! What there is of an earlier agent, read before it is known whose it is: the keeper is asked
//! meanwhile.

use super::{
    FILE, Header, Recovered,
    damage::Damage,
    legacy,
    line::{Line, decode},
    plan_file::{self, WrittenPlan},
};
use mainstay_pool::{COMPUTE, CONFIGURATION};
use mainstay_sys::state_dir::{Durability, StateDir};
use std::path::Path;

/// Journal and plan, as they are found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(super) journal: Result<FoundJournal, Damage>,
    pub(super) plan: Option<WrittenPlan>,
}

impl Found {
    /// Reads both, each in a thread: with many jobs it takes its time.
    pub(crate) async fn read(run_dir: &Path) -> Found {
        let (here, there) = (run_dir.to_owned(), run_dir.to_owned());
        let journal = COMPUTE.run(move || FoundJournal::read(&here));
        let plan = CONFIGURATION.run(move || plan_file::read(&there));
        let (journal, plan) = tokio::join!(journal, plan);
        Found {
            journal: journal.unwrap_or_else(|_| FoundJournal::read(run_dir)),
            plan: plan.unwrap_or_else(|_| plan_file::read(run_dir)),
        }
    }

    #[cfg(test)]
    pub(super) fn read_now(run_dir: &Path) -> Found {
        Found { journal: FoundJournal::read(run_dir), plan: plan_file::read(run_dir) }
    }
}

/// A journal as it was found, of whatever run. Nothing is changed in it.
#[derive(Debug)]
pub(crate) struct FoundJournal {
    pub(super) recovered: Recovered,
    pub(super) header: Header,
    /// How long its whole lines are.
    pub(super) valid: u64,
    /// What follows them, in bytes and in lines.
    pub(super) dropped: Option<(usize, usize)>,
}

impl FoundJournal {
    pub(crate) fn read(run_dir: &Path) -> Result<FoundJournal, Damage> {
        let bytes = StateDir::open(run_dir, Durability::Process)?.read(FILE)?;
        let first = bytes.split(|byte| *byte == b'\n').next().and_then(decode);
        let Some(Line::Header(header)) = first else { return Err(Damage::Foreign) };
        let (mut recovered, valid) = read(&bytes, &header).ok_or(Damage::Foreign)?;
        let rest = without_zeros(&bytes[valid..]);
        recovered.broken_at = is_damaged_before_tail(rest)
            .then(|| bytes[..valid].iter().filter(|byte| **byte == b'\n').count() + 1);
        let lines = rest.split_inclusive(|byte| *byte == b'\n').count();
        let dropped = (!rest.is_empty()).then_some((rest.len(), lines));
        Ok(FoundJournal { recovered, header, valid: valid as u64, dropped })
    }
}

/// What the whole lines say, and how many bytes they are. `None`: it is not the journal of this run.
pub(super) fn read(bytes: &[u8], header: &Header) -> Option<(Recovered, usize)> {
    let mut recovered = Recovered::default();
    let mut valid = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(read) = line.strip_suffix(b"\n").and_then(decode) else { break };
        match read {
            Line::Header(read) if read.is_of(header) && valid == 0 => {
                recovered.format = Some(read.format);
            }
            Line::Header(_) => return None,
            _ if valid == 0 => return None,
            Line::Snapshot { records, taken, upgrade } => {
                recovered.begin_anew(records, taken, upgrade);
            }
            Line::Events(events) => recovered.add(events),
            Line::Change { events, records, taken, upgrade } => {
                recovered.change(events, records, taken, upgrade);
            }
            Line::Base(legacy::Base { taken, upgrade, state }) => {
                recovered.begin_anew(state.records(), taken, upgrade);
            }
            Line::Step(legacy::Step { events, taken, upgrade, state }) => {
                recovered.change(events.into(), state.records(), taken, upgrade);
            }
            Line::Unknown => recovered.unknown_lines += 1,
        }
        valid += line.len();
    }
    (valid > 0).then_some((recovered, valid))
}

/// What there is before the room in reserve.
pub(super) fn without_zeros(bytes: &[u8]) -> &[u8] {
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..length]
}

/// Whether a line that cannot be read is followed by one that can.
fn is_damaged_before_tail(dropped: &[u8]) -> bool {
    let mut after = dropped.split_inclusive(|byte| *byte == b'\n').skip(1);
    after.any(|line| line.strip_suffix(b"\n").and_then(decode).is_some())
}
