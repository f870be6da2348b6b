//! What is wanted of a job: in its state file, and for an agent that has lost its journal.

use crate::{keeper::Keeper, process::incarnation::job_state_name};
use mainstay_core::{job::JobSummary, name::Name};
use mainstay_sys::state_dir::StateDir;
use mainstay_wire::state::ContainerState;
use std::{io, path::Path};

impl Keeper {
    pub(crate) fn remember(&mut self, name: &Name, summary: Option<JobSummary>) {
        let Some(node) = self.node() else { return };
        let dir = node.resources.dir.job(name);
        // One that is to run, and never did, is like any other.
        if summary.is_none() && !self.names.contains_key(name) {
            return;
        }
        let id = self.job_id(name, dir);
        let Keeper { jobs, state_files, reserve, context, .. } = self;
        let Some(job) = jobs.get_mut(&id) else { return };
        let before = job.desired();
        job.summary = summary;
        let (desired, at_rest) = (job.desired(), job.process.is_none() && job.highest > 0);
        if at_rest && before != desired {
            let path = job_state_name(name);
            let (files, file) = (state_files.clone(), path.clone());
            let update = move || rewrite(&files, &file, |state| state.desired = Some(desired));
            // It tells how the job ended all the same, and is written anew at the next start.
            let _ = reserve.with(|| context.disk.run(update.clone()));
        }
    }
}

fn rewrite(
    state_files: &StateDir,
    path: &Path,
    change: impl FnOnce(&mut ContainerState),
) -> io::Result<()> {
    let mut state: ContainerState = serde_json::from_slice(&state_files.read(path)?)?;
    change(&mut state);
    let text = format!("{}\n", state.to_json());
    state_files.replace(path, 0o644, text.as_bytes()).map(drop)
}
