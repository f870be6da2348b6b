//! What the run directory tells about a run that may be over: for the next run, for an agent whose
//! keeper is dead, and for those who read the logs.

use crate::state::ContainerState;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// The file that names a run, as long as it lasts.
pub const RUN_FILE: &str = "run.json";
/// The file that names the state directory; it outlives the run.
pub const STATE_DIR_FILE: &str = "state_dir";

/// The file that names the directory of the configuration; it outlives the run.
pub const PROJECT_FILE: &str = "project";
/// The plan in force, as an agent writes it.
pub const PLAN_FILE: &str = "plan.json";

/// The directories of a node.
#[derive(Debug, Clone, Default)]
pub struct Dirs {
    pub run: PathBuf,
    pub state: PathBuf,
}

/// All that a node puts into its run directory.
pub const ENTRIES: [&str; 11] = [
    "mainstay.sock",
    "keeper.sock",
    "jobs",
    "notify",
    "plan.json",
    "journal",
    ".journal.new",
    "run.json",
    "lock",
    "project",
    "state_dir",
];

/// What the next run has to know about this one, should it not end by itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunFile {
    pub run: String,
    pub pid: u32,
    pub boot: String,
    #[serde(default, with = "mainstay_core::text::path")]
    pub cgroup: Option<PathBuf>,
    pub version: String,
}

impl RunFile {
    #[must_use]
    pub fn read(run_dir: &Path) -> Option<RunFile> {
        serde_json::from_slice(&fs::read(run_dir.join(RUN_FILE)).ok()?).ok()
    }
}

/// A run as far as its directory names it.
#[derive(Debug, Clone)]
pub struct NamedRun {
    pub run: String,
    /// The boot of the machine that it belonged to, if that is known.
    pub boot: Option<String>,
    /// Where its cgroups are, if that is known.
    pub cgroup: Option<PathBuf>,
}

impl NamedRun {
    /// By run.json, and where that is damaged by the journal or plan.json, which name the run as
    /// well.
    #[must_use]
    pub fn read(run_dir: &Path) -> Option<NamedRun> {
        if let Some(RunFile { run, boot, cgroup, .. }) = RunFile::read(run_dir) {
            return Some(NamedRun { run, boot: Some(boot), cgroup });
        }
        let journal = fs::read(run_dir.join("journal")).unwrap_or_default();
        // Behind its checksum.
        let first = journal.split(|byte| *byte == b'\n').next().and_then(|line| line.get(9..));
        let header = first.and_then(|json| serde_json::from_slice::<JournalStart>(json).ok());
        let plan = || serde_json::from_slice(&fs::read(run_dir.join("plan.json")).ok()?).ok();
        let Naming { run, boot } = header.map(|it| it.header).or_else(plan)?;
        Some(NamedRun { run, boot, cgroup: None })
    }
}

#[derive(Deserialize)]
struct JournalStart {
    header: Naming,
}

#[derive(Deserialize)]
struct Naming {
    run: String,
    #[serde(default)]
    boot: Option<String>,
}

/// The leaders of process groups that the state files of jobs name, and by when each had begun.
#[must_use]
pub fn leaders(run_dir: &Path) -> Vec<(u32, u64)> {
    let states = states(run_dir).filter_map(|path| fs::read(path).ok());
    let states = states.filter_map(|text| serde_json::from_slice::<ContainerState>(&text).ok());
    states.filter_map(|state| state.pid.zip(state.started)).collect()
}

fn states(run_dir: &Path) -> impl Iterator<Item = PathBuf> {
    let jobs = fs::read_dir(run_dir.join("jobs")).into_iter().flatten().filter_map(Result::ok);
    jobs.map(|job| job.path().join("state"))
}

/// When a file of a run was last written: it was alive then.
#[must_use]
pub fn last_written(run_dir: &Path) -> Option<SystemTime> {
    let files = [RUN_FILE, "journal", PLAN_FILE].map(|name| run_dir.join(name));
    let written = |path: PathBuf| path.symlink_metadata().ok()?.modified().ok();
    files.into_iter().chain(states(run_dir)).filter_map(written).max()
}

/// The state directory of the last run in this run directory.
#[must_use]
pub fn state_dir_of(run_dir: &Path) -> Option<PathBuf> {
    path_in(&run_dir.join(STATE_DIR_FILE))
}

/// The directory of the configuration that was last run in this run directory.
#[must_use]
pub fn project_of(run_dir: &Path) -> Option<PathBuf> {
    path_in(&run_dir.join(PROJECT_FILE))
}

fn path_in(file: &Path) -> Option<PathBuf> {
    let bytes = fs::read(file).ok()?;
    (!bytes.is_empty()).then(|| PathBuf::from(OsString::from_vec(bytes)))
}

/// The jobs of the plan in force, while there is one.
#[must_use]
pub fn applied_jobs(run_dir: &Path) -> Option<BTreeSet<String>> {
    let applied: Applied = serde_json::from_slice(&fs::read(run_dir.join(PLAN_FILE)).ok()?).ok()?;
    Some(applied.plan.jobs.into_iter().map(|job| job.name).collect())
}

/// The jobs that were started in the last run, by what they have left.
#[must_use]
pub fn started_jobs(run_dir: &Path) -> BTreeSet<String> {
    let jobs = fs::read_dir(run_dir.join("jobs")).into_iter().flatten();
    jobs.filter_map(|job| job.ok()?.file_name().into_string().ok()).collect()
}

/// As much of the applied plan as its names need.
#[derive(Deserialize)]
struct Applied {
    plan: AppliedPlan,
}

#[derive(Deserialize)]
struct AppliedPlan {
    jobs: Vec<AppliedJob>,
}

#[derive(Deserialize)]
struct AppliedJob {
    name: String,
}
