//! `plan.json`: the plan in force. The next agent goes on with it, whatever the file says by then.

use super::format::{self, Format, Unreadable};
use mainstay_core::plan::Plan;
use mainstay_pool::RUN_FILES;
use mainstay_sys::state_dir::{Durability, StateDir};
use mainstay_wire::run_dir::PLAN_FILE;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use tokio::sync::{mpsc, oneshot};

#[derive(Debug, Serialize, Deserialize)]
struct PlanFile<P> {
    #[serde(flatten)]
    format: Format,
    run: String,
    #[serde(with = "mainstay_core::text::path")]
    state_dir: PathBuf,
    plan: P,
}

/// How far plan.json is the plan in force. What it is not, the journal holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnDisk {
    Current,
    /// There was no time to write it yet.
    Behind,
    /// It cannot be written, and that was said.
    Failed,
}

impl OnDisk {
    /// What an attempt to write it has come to.
    pub(crate) fn after(self, written: io::Result<()>, run_dir: &Path) -> OnDisk {
        match (written, self) {
            (Ok(()), OnDisk::Failed) => {
                tracing::info!("plan.json is written now");
                OnDisk::Current
            }
            (Ok(()), OnDisk::Current | OnDisk::Behind) => OnDisk::Current,
            (Err(_), OnDisk::Failed) => OnDisk::Failed,
            (Err(error), OnDisk::Current | OnDisk::Behind) => {
                tracing::error!(
                    "cannot write {}: {error}; the journal holds the plan until it can. Free some \
                     space, it is tried again by itself",
                    path(run_dir).display()
                );
                OnDisk::Failed
            }
        }
    }
}

/// Writes plans outside the loop, one at a time.
#[derive(Debug)]
pub(crate) struct PlanWriter {
    under_way: bool,
    /// Another plan has come into force since that one was begun.
    outdated: bool,
    done: mpsc::UnboundedReceiver<io::Result<()>>,
    report: mpsc::UnboundedSender<io::Result<()>>,
    /// Told when an attempt to write the plan in force has come to an end.
    waiting: Vec<oneshot::Sender<()>>,
}

impl PlanWriter {
    pub(crate) fn new() -> PlanWriter {
        let (report, done) = mpsc::unbounded_channel();
        PlanWriter { under_way: false, outdated: false, done, report, waiting: Vec::new() }
    }

    pub(crate) fn write(
        &mut self,
        plan: Plan,
        write: impl FnOnce(&Plan) -> io::Result<()> + Send + 'static,
    ) {
        (self.under_way, self.outdated) = (true, false);
        let report = self.report.clone();
        let begun = RUN_FILES.begin(move || {
            // Nobody listens only when the agent is gone.
            let _ = report.send(write(&plan));
        });
        if let Err(unserved) = begun {
            let _ = self.report.send(Err(unserved.into()));
        }
    }

    /// The next attempt that has come to an end. May be dropped at any time.
    pub(crate) async fn finished(&mut self) -> io::Result<()> {
        let written = self.done.recv().await.expect("this struct holds a sender");
        self.under_way = false;
        written
    }

    /// Comes when the plan in force is there, or cannot be written.
    pub(crate) fn when_written(&mut self) -> oneshot::Receiver<()> {
        let (tell, told) = oneshot::channel();
        self.waiting.push(tell);
        told
    }

    /// The plan in force was tried to be written.
    pub(crate) fn tell_waiting(&mut self) {
        for tell in self.waiting.drain(..) {
            // Nobody is left only when the reload was given up.
            let _ = tell.send(());
        }
    }

    pub(crate) fn is_writing(&self) -> bool {
        self.under_way
    }

    pub(crate) fn outdate(&mut self) {
        self.outdated = true;
    }

    pub(crate) fn is_outdated(&self) -> bool {
        self.outdated
    }
}

fn path(run_dir: &Path) -> PathBuf {
    run_dir.join(PLAN_FILE)
}

/// Readable by us alone: it may hold secrets.
pub(crate) fn write(run_dir: &Path, state_dir: &Path, run: &str, plan: &Plan) -> io::Result<()> {
    let file = PlanFile {
        format: Format::OURS,
        run: run.to_owned(),
        state_dir: state_dir.to_owned(),
        plan,
    };
    let bytes = serde_json::to_vec(&file)?;
    StateDir::open(run_dir, Durability::Process)?.replace(PLAN_FILE, 0o600, &bytes).map(drop)
}

/// A plan that was written, and of which run.
#[derive(Debug)]
pub(crate) struct WrittenPlan {
    run: String,
    plan: Plan,
}

impl WrittenPlan {
    /// The plan, if it is of this run.
    pub(crate) fn of(self, run: &str) -> Option<Plan> {
        (self.run == run).then_some(self.plan)
    }
}

/// The plan that was written last, if there is one.
pub(crate) fn read(run_dir: &Path) -> Option<WrittenPlan> {
    let bytes = fs::read(path(run_dir)).ok()?;
    let file: PlanFile<Plan> = serde_json::from_slice(&bytes).ok()?;
    file.format.is_readable().then_some(WrittenPlan { run: file.run, plan: file.plan })
}

/// Whether this binary can read the plan of a running node.
pub(crate) fn check(run_dir: &Path) -> Result<(), Unreadable> {
    let Some(bytes) = format::bytes(run_dir, PLAN_FILE)? else { return Ok(()) };
    let not_json = |error: serde_json::Error| Unreadable::content(PLAN_FILE, error);
    let bare: PlanFile<IgnoredAny> = serde_json::from_slice(&bytes).map_err(not_json)?;
    format::check(PLAN_FILE, bare.format)?;
    serde_json::from_slice::<PlanFile<Plan>>(&bytes).map(drop).map_err(not_json)
}

/// The state directory of the node that runs or ran in this run directory: readable also when
/// no agent answers.
#[must_use]
pub fn state_dir(run_dir: &Path) -> Option<PathBuf> {
    let bytes = fs::read(path(run_dir)).ok()?;
    let file: PlanFile<IgnoredAny> = serde_json::from_slice(&bytes).ok()?;
    Some(file.state_dir)
}
