//! The processes of a peer: who they are, what they cost, and their certain end.
//!
//! The harness is a subreaper, so whatever it started stays below it, and everything it starts
//! carries MARK in its environment, so that a later clean-up finds it too.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

pub(crate) const MARK: &str = "MAINSTAY_BENCH";

/// A command whose processes belong to the run that works in `dir`.
pub(crate) fn marked(program: impl AsRef<std::ffi::OsStr>, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.env(MARK, dir);
    command
}

pub(crate) fn pids() -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .collect()
}

pub(crate) fn name(pid: Pid) -> Option<String> {
    let comm = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(comm.trim_end().to_owned())
}

pub(crate) fn command_line(pid: Pid) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// Alive and not a zombie.
pub(crate) fn alive(pid: Pid) -> bool {
    stat(pid).is_some_and(|(_, state)| state != 'Z')
}

/// Parent and state.
fn stat(pid: Pid) -> Option<(Pid, char)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((Pid::from_raw(fields.next()?.parse().ok()?)?, state))
}

/// All living descendants of `root`, without itself.
pub(crate) fn descendants(root: Pid) -> Vec<Pid> {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for pid in pids() {
        if let Some((parent, state)) = stat(pid)
            && state != 'Z'
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut next = vec![root];
    while let Some(pid) = next.pop() {
        let below = children.remove(&pid).unwrap_or_default();
        next.extend(&below);
        found.extend(below);
    }
    found
}

/// Everything below `root` and itself, except the jobs.
pub(crate) fn supervisors(root: Pid, jobs: &[&str]) -> Vec<Pid> {
    let mut tree = descendants(root);
    tree.push(root);
    tree.retain(|pid| name(*pid).is_some_and(|name| !jobs.contains(&name.as_str())));
    tree
}

/// Proportional set size in bytes: shared pages count by their share.
pub(crate) fn pss(pids: &[Pid]) -> f64 {
    let of = |pid: &Pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        kilobytes(&text, "Pss:").unwrap_or(0.0)
    };
    pids.iter().map(of).sum::<f64>() * 1024.0
}

/// What the kernel itself holds in small objects, in bytes.
pub(crate) fn slab() -> f64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    kilobytes(&text, "Slab:").unwrap_or(0.0) * 1024.0
}

fn kilobytes(text: &str, key: &str) -> Option<f64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key))
        .and_then(|value| value.split_whitespace().next())
        .and_then(|value| value.parse().ok())
}

/// How often the threads of these processes were switched to, since each began.
pub(crate) fn switches(pids: &[Pid]) -> u64 {
    let mut sum = 0;
    for pid in pids {
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for thread in threads.flatten() {
            let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            let counts = status
                .lines()
                .filter_map(|line| line.split_once("ctxt_switches:"))
                .filter_map(|(_, count)| count.trim().parse::<u64>().ok());
            sum += counts.sum::<u64>();
        }
    }
    sum
}

/// Processor seconds that a process has used so far; the kernel counts in hundredths.
pub(crate) fn processor(pid: Pid) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Collects children that have ended, adopted ones included.
pub(crate) fn reap() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

/// Ends everything below the harness, and returns when it is gone.
pub(crate) fn kill_all() {
    loop {
        let left = descendants(getpid());
        for pid in &left {
            kill(*pid, Signal::KILL);
        }
        reap();
        if left.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends what a run that worked in `dir` left behind, found by its mark.
pub(crate) fn kill_marked(dir: &Path) {
    let mark = [MARK.as_bytes(), b"=", dir.as_os_str().as_encoded_bytes()].concat();
    let mut spared: HashSet<Pid> = HashSet::from([getpid()]);
    loop {
        let marked: Vec<Pid> = pids()
            .into_iter()
            .filter(|pid| !spared.contains(pid) && alive(*pid))
            .filter(|pid| {
                let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environ.split(|byte| *byte == 0).any(|variable| variable.starts_with(&mark))
            })
            .collect();
        if marked.is_empty() {
            return;
        }
        for pid in marked {
            if kill_process(pid, Signal::KILL).is_err() {
                spared.insert(pid);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process that is gone already is as good as killed.
pub(crate) fn kill(pid: Pid, signal: Signal) {
    let _gone = kill_process(pid, signal);
}
