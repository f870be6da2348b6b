//! `disabled` in the state directory: the jobs that stay disabled over runs, one name a line.
//!
//! Written beside, synced and renamed, outside the loop: a slow disk delays nobody, and of several
//! changes that wait for it the last one counts.

use mainstay_core::name::Name;
use mainstay_sys::state_dir::{Durability, StateDir};
use std::{fs, io, path::Path};
use tokio::{sync::watch, task::spawn_blocking};

#[derive(Debug)]
pub(crate) struct Disabled {
    /// Numbered, so that it is known which of them is on the disk.
    latest: watch::Sender<(u64, Vec<Name>)>,
    written: watch::Receiver<u64>,
}

impl Disabled {
    /// Must be called inside the runtime.
    pub(crate) fn start(state_dir: &Path) -> Disabled {
        let (latest, mut changes) = watch::channel((0, Vec::new()));
        let (done, written) = watch::channel(0);
        let dir = state_dir.to_owned();
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                let (number, jobs) = changes.borrow_and_update().clone();
                let dir = dir.clone();
                if let Ok(Err(error)) = spawn_blocking(move || write(&dir, &jobs)).await {
                    tracing::error!("which jobs are disabled is not kept over runs: {error}");
                }
                done.send_replace(number);
            }
        });
        Disabled { latest, written }
    }

    pub(crate) fn keep(&self, jobs: Vec<Name>) {
        self.latest.send_modify(|latest| *latest = (latest.0 + 1, jobs));
    }

    /// Returns when everything is on the disk.
    pub(crate) async fn written(&self) {
        let latest = self.latest.borrow().0;
        // The writer ends with the runtime only.
        let _ = self.written.clone().wait_for(|written| *written >= latest).await;
    }
}

const FILE: &str = "disabled";

/// Names that cannot be read are left out: they cannot be those of a job.
pub(crate) fn read(state_dir: &Path) -> Vec<Name> {
    let text = fs::read_to_string(state_dir.join(FILE)).unwrap_or_default();
    text.lines().filter_map(|line| Name::new(line.trim()).ok()).collect()
}

fn write(state_dir: &Path, jobs: &[Name]) -> io::Result<()> {
    let text: String = jobs.iter().map(|job| format!("{job}\n")).collect();
    StateDir::open(state_dir, Durability::Machine)?.replace(FILE, 0o666, text.as_bytes()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_of_several_changes_is_kept() {
        let dir = std::env::temp_dir().join(format!("mainstay-disabled-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let name = |text: &str| Name::new(text).expect("a name");
        let disabled = Disabled::start(&dir);
        for jobs in [vec![name("a")], vec![], vec![name("b"), name("c")]] {
            disabled.keep(jobs);
        }
        disabled.written().await;
        assert_eq!(read(&dir), [name("b"), name("c")]);
        fs::remove_dir_all(&dir).expect("our own directory");
    }
}
