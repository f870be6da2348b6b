//! Where a node lives: its run directory and its state directory.

use crate::{
    failure::{Failure, USAGE},
    term,
};
use rustix::{
    fs::{Access, access},
    process::geteuid,
};
use std::{
    env, fs,
    path::{Path, PathBuf, absolute},
};

/// `--run-dir`, `MAINSTAY_RUN_DIR`, else `/run/mainstay` as root, `$XDG_RUNTIME_DIR/mainstay`,
/// `/tmp/mainstay-UID`.
pub(crate) fn run_dir(flag: Option<&Path>) -> Result<PathBuf, Failure> {
    made_absolute(&named(flag, "MAINSTAY_RUN_DIR").unwrap_or_else(usual_run_dir))
}

fn usual_run_dir() -> PathBuf {
    let user = geteuid();
    if user.is_root() {
        return PathBuf::from("/run/mainstay");
    }
    variable("XDG_RUNTIME_DIR").map_or_else(
        || PathBuf::from(format!("/tmp/mainstay-{}", user.as_raw())),
        |dir| dir.join("mainstay"),
    )
}

/// Whether it is where nobody has to say where it is, or below that.
pub(crate) fn is_usual(dir: &Path) -> bool {
    dir.starts_with(usual_run_dir())
}

/// `--state-dir`, `MAINSTAY_STATE_DIR`, else `/var/lib/mainstay` as root, `$XDG_STATE_HOME/mainstay`,
/// `~/.local/state/mainstay`; the run directory, with a warning, where none can be written.
pub(crate) fn state_dir(flag: Option<&Path>, run_dir: &Path) -> Result<PathBuf, Failure> {
    if let Some(dir) = named(flag, "MAINSTAY_STATE_DIR") {
        return made_absolute(&dir);
    }
    let dir = default_state_dir();
    if let Some(dir) = dir.as_deref().filter(|dir| writable(dir)) {
        return made_absolute(dir);
    }
    let tried =
        dir.map_or("without a home".to_owned(), |dir| format!("{} is not writable", dir.display()));
    term::tell(&format!(
        "no state directory ({tried}): logs go to {} and may not outlive a reboot; --state-dir \
         names another place",
        run_dir.display()
    ));
    Ok(run_dir.to_owned())
}

fn default_state_dir() -> Option<PathBuf> {
    if geteuid().is_root() {
        return Some(PathBuf::from("/var/lib/mainstay"));
    }
    variable("XDG_STATE_HOME")
        .or_else(|| Some(variable("HOME")?.join(".local/state")))
        .map(|dir| dir.join("mainstay"))
}

/// The state directory of the node that runs or ran in `run_dir`. Without either, only the usual
/// run directory has a usual state directory: one that was `named` is not guessed about.
pub(crate) fn existing_state_dir(
    flag: Option<&Path>,
    run_dir: &Path,
    named_dir: bool,
) -> Result<PathBuf, Failure> {
    let known = named(flag, "MAINSTAY_STATE_DIR")
        .or_else(|| mainstay_agent::applied_state_dir(run_dir))
        .or_else(|| mainstay_wire::run_dir::state_dir_of(run_dir));
    match known {
        Some(dir) => made_absolute(&dir),
        None if named_dir || variable("MAINSTAY_RUN_DIR").is_some() => {
            Err(Failure::failed(format!(
                "no node has ever run in {}: --state-dir names a state directory itself",
                run_dir.display()
            )))
        }
        None => made_absolute(&default_state_dir().unwrap_or_else(|| run_dir.to_owned())),
    }
}

pub(crate) fn named(flag: Option<&Path>, name: &str) -> Option<PathBuf> {
    flag.map(Path::to_owned).or_else(|| variable(name))
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

pub(crate) fn made_absolute(path: &Path) -> Result<PathBuf, Failure> {
    absolute(path)
        .map_err(|error| Failure::new(USAGE, format!("'{}' is no path: {error}", path.display())))
}

fn writable(dir: &Path) -> bool {
    fs::create_dir_all(dir).is_ok() && access(dir, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}
