//! Whether the program of a job is there: Supervisor looks before it starts one.

use crate::xmlrpc::fault::{Code, Fault};
use mainstay_core::plan::JobPlan;
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// May take as long as a disk does.
pub(super) fn look(plan: &JobPlan) -> Result<(), Fault> {
    let Some(program) = plan.exec.first() else { return Ok(()) };
    match found(plan, program) {
        Found::Program => Ok(()),
        Found::Other => Err(Fault::about(Code::NotExecutable, not_executable(program))),
        Found::Nothing => Err(Fault::about(Code::NoFile, not_found(program))),
    }
}

pub(super) fn not_found(program: &str) -> String {
    format!("can't find command '{program}'")
}

pub(super) fn not_executable(program: &str) -> String {
    format!("command at '{program}' is not executable")
}

#[derive(PartialEq)]
enum Found {
    Program,
    /// Something that cannot be executed.
    Other,
    Nothing,
}

fn found(plan: &JobPlan, program: &str) -> Found {
    let directory = plan.cwd.clone().unwrap_or_default();
    if program.contains('/') {
        return kind(&directory.join(program));
    }
    let own = plan.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.into());
    let Some(path) = own.or_else(|| std::env::var_os("PATH")) else { return Found::Program };
    let places = std::env::split_paths(&path).map(|place: PathBuf| kind(&place.join(program)));
    let mut best = Found::Nothing;
    for place in places {
        match place {
            Found::Program => return Found::Program,
            Found::Other => best = Found::Other,
            Found::Nothing => {}
        }
    }
    best
}

fn kind(path: &Path) -> Found {
    match fs::metadata(path) {
        Ok(file) if file.is_file() && file.permissions().mode() & 0o111 != 0 => Found::Program,
        Ok(_) => Found::Other,
        Err(_) => Found::Nothing,
    }
}
