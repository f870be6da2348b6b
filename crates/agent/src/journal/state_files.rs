//! What the jobs' state files say was wanted of them: for an agent that has lost its journal, of a
//! keeper that was never told.

use mainstay_core::{
    exit::Exit,
    job::{Desired, JobSummary, Phase},
    name::Name,
    signal::Signal,
};
use mainstay_sys::state_dir::{Durability, StateDir};
use mainstay_wire::{
    link::{HeldJob, Welcome},
    state::{ContainerState, ContainerStatus},
};
use std::{fs, path::Path};

/// Adds what is known of jobs at rest to what the keeper has told. A keeper that was told knows
/// better: it has nothing to say of a job that is to run.
pub(crate) fn recall(welcome: &mut Welcome) {
    if welcome.told.is_some() {
        return;
    }
    for (job, highest, summary) in at_rest(&welcome.run_dir) {
        match welcome.jobs.iter_mut().find(|held| held.job == job) {
            Some(held) if held.live.is_none() && held.highest <= highest => {
                held.summary.get_or_insert(summary);
            }
            Some(_) => {}
            None => {
                let summary = Some(summary);
                welcome.jobs.push(HeldJob { job, highest, live: None, open: false, summary });
            }
        }
    }
}

/// The jobs that have ended and were not to run, with their last incarnation.
fn at_rest(run_dir: &Path) -> Vec<(Name, u64, JobSummary)> {
    let jobs = run_dir.join("jobs");
    let Ok(files) = StateDir::open(&jobs, Durability::Process) else { return Vec::new() };
    let entries = fs::read_dir(&jobs).into_iter().flatten().filter_map(Result::ok);
    let names = entries.filter_map(|entry| Name::new(entry.file_name().to_str()?).ok());
    let rests = |job: Name| {
        let text = files.read(Path::new(job.as_str()).join("state")).ok()?;
        let state: ContainerState = serde_json::from_slice(&text).ok()?;
        Some((job, state.incarnation.unwrap_or(0), summary(&state)?))
    };
    names.filter_map(rests).collect()
}

fn summary(state: &ContainerState) -> Option<JobSummary> {
    let desired = state.desired.filter(|desired| *desired != Desired::Run)?;
    if state.status == ContainerStatus::Up {
        return None;
    }
    let process = &state.container_process_state;
    let signal = || process.signal.and_then(Signal::from_number);
    let exit = match process.exit_status {
        Some(code) => Some(Exit::Code { code }),
        None => signal().map(|signal| Exit::Signal { signal, oom: process.oomed }),
    };
    let phase = match exit {
        Some(Exit::Code { code: 0 }) => Phase::Exited,
        Some(Exit::Code { .. } | Exit::Signal { .. } | Exit::Error { .. }) | None => Phase::Stopped,
    };
    Some(JobSummary { desired, phase, exit })
}
