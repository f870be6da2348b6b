//! What a configuration expects of the machine it is checked on: users, groups and programs. None of it is
//! a mistake, since it may be checked elsewhere than it is run.

use mainstay_config::{Diagnostic, Loaded};
use mainstay_core::{
    plan::{JobPlan, Probe},
    text::bytes,
};
use mainstay_sys::user::{lookup_group, lookup_user};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    os::unix::fs::PermissionsExt,
    path::Path,
};

const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const USER: &str = "make it, or use another; the job would not start here";

/// What is not there, each once.
pub(super) fn warnings(loaded: &Loaded) -> Vec<Diagnostic> {
    let mut told: BTreeSet<String> = BTreeSet::new();
    let mut users: BTreeMap<&str, Option<String>> = BTreeMap::new();
    let mut all = Vec::new();
    for (job, place) in loaded.plan.jobs.iter().zip(&loaded.places) {
        let user = job.user.as_deref();
        let user = user.and_then(|name| users.entry(name).or_insert_with(|| unknown(name)).clone());
        let groups = job.group.iter().chain(job.groups.iter().flatten());
        let groups = groups.filter_map(|name| unknown_group(name));
        let programs = commands(job)
            .filter_map(|(command, help)| Some((missing_program(job, command)?, help)));
        let found = user.into_iter().chain(groups).map(|it| (it, USER)).chain(programs);
        for (what, help) in found {
            if told.insert(what.clone()) {
                let message = format!("jobs.{}: {what}", place.job);
                all.push(Diagnostic::warning(message).file(&place.at).help(help));
            }
        }
    }
    all
}

/// What is executed for a job, with what to do where that cannot be.
fn commands(job: &JobPlan) -> impl Iterator<Item = (&[String], &'static str)> {
    let checks = job.checks.iter().filter_map(|check| match &check.probe {
        Probe::Exec(command) => Some(command.as_slice()),
        Probe::Http(_) | Probe::Tcp(_) | Probe::Notify | Probe::Fd(_) => None,
    });
    let own = "install it, or correct exec; the job would not start here";
    let check = "install it, or correct health; the job would never be healthy here";
    let stop = "install it, or correct stop; it would not be run here";
    std::iter::once((job.exec.as_slice(), own))
        .chain(checks.map(move |command| (command, check)))
        .chain(job.stop.exec.as_deref().map(|command| (command, stop)))
}

fn unknown(name: &str) -> Option<String> {
    match lookup_user(name) {
        Ok(None) => Some(format!("there is no user '{name}' on this machine")),
        // A directory that does not answer says nothing about it.
        Ok(Some(_)) | Err(_) => None,
    }
}

fn unknown_group(name: &str) -> Option<String> {
    match lookup_group(name) {
        Ok(None) => Some(format!("there is no group '{name}' on this machine")),
        Ok(Some(_)) | Err(_) => None,
    }
}

fn missing_program(job: &JobPlan, command: &[String]) -> Option<String> {
    let program = command.first()?;
    let cwd = job.cwd.clone().unwrap_or_default();
    let there = match program.contains('/') {
        true => {
            let path = cwd.join(bytes::to_os(program));
            if path.is_file() && !is_executable(&path) {
                return Some(format!("'{program}' cannot be executed on this machine"));
            }
            is_executable(&path)
        }
        false => {
            let own = job.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value);
            let path = own.map(|value| bytes::to_os(value).into_owned());
            let path = path.or_else(|| std::env::var_os("PATH"));
            let path = path.unwrap_or_else(|| DEFAULT_PATH.into());
            std::env::split_paths(&path).any(|dir| is_in(&cwd, &dir, &bytes::to_os(program)))
        }
    };
    (!there).then(|| format!("there is no program '{program}' on this machine"))
}

fn is_in(cwd: &Path, dir: &Path, program: &OsStr) -> bool {
    is_executable(&cwd.join(dir).join(program))
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}
