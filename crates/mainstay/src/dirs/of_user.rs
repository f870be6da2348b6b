//! The run directories of all nodes of a user: those that nobody had to name, and those in which an
//! agent is at work.

use super::{UserEnv, former::arguments};
use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

const AGENTS: [&str; 2] = ["__agent", "__spare"];

pub(crate) fn run_dirs_of_user(env: &UserEnv) -> BTreeSet<PathBuf> {
    let parents = [env.usual_run_dir(), env.run_dir_in_tmp()];
    let usual = parents.iter().flat_map(|parent| in_parent(parent));
    let named = entries(Path::new("/proc")).filter_map(|process| run_dir_of_agent(&process, env));
    let all = usual.chain(named);
    all.filter(|dir| is_of(dir, env.uid)).filter_map(|dir| dir.canonicalize().ok()).collect()
}

/// Those of all projects, and that of the version before.
pub(super) fn in_parent(parent: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::iter::once(parent.to_owned()).chain(entries(parent))
}

fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(dir).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

fn is_of(path: &Path, uid: u32) -> bool {
    fs::metadata(path).is_ok_and(|found| found.uid() == uid && found.is_dir())
}

/// An agent says first of all where its node is.
fn run_dir_of_agent(process: &Path, env: &UserEnv) -> Option<PathBuf> {
    let pid = process.file_name()?.to_str()?.parse().ok()?;
    let words = is_of(process, env.uid).then(|| arguments(pid))??;
    match words.as_slice() {
        [_, role, flag, dir, ..] if flag == "--run-dir" && AGENTS.iter().any(|it| role == it) => {
            Some(dir.into())
        }
        _ => None,
    }
}
