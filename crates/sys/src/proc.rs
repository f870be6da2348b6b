//! What /proc tells about other processes. Everything here may be gone or hidden: then it is `None`.

use std::{fmt::Display, fs, io::Read};

fn read(pid: impl Display, file: &str, cap: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let opened = fs::File::open(format!("/proc/{pid}/{file}")).ok()?;
    opened.take(cap).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The direct children of this process's main thread, adopted orphans included, and not those that
/// do our own work.
#[must_use]
pub fn own_children() -> Vec<u32> {
    let mut children = all_children();
    children.retain(|pid| !crate::apart::is_worker(*pid));
    children
}

fn all_children() -> Vec<u32> {
    let own = crate::signal::own_pid();
    match fs::read_to_string(format!("/proc/{own}/task/{own}/children")) {
        Ok(text) => text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        Err(_) => all().into_iter().filter(|pid| parent(*pid) == Some(own)).collect(),
    }
}

/// The direct children of a process, of all its threads; none of one that is gone.
#[must_use]
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let listed = threads.filter_map(Result::ok).map(|thread| {
        let text = fs::read_to_string(thread.path().join("children")).ok()?;
        let pids = text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
        Some(pids.collect::<Vec<u32>>())
    });
    match listed.collect::<Option<Vec<_>>>() {
        Some(listed) => listed.concat(),
        // A kernel that does not list them.
        None => all().into_iter().filter(|child| parent(*child) == Some(pid)).collect(),
    }
}

/// Every process we can see.
#[must_use]
pub fn all() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Fields of `stat` after the command name, which may itself hold blanks and brackets.
fn stat_fields(pid: impl Display) -> Option<Vec<String>> {
    let bytes = read(pid, "stat", 4096)?;
    let text = String::from_utf8_lossy(&bytes);
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_ascii_whitespace().map(str::to_owned).collect())
}

/// What tells one process from another that has its number later, and from its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Waiting to be reaped.
    pub dead: bool,
    /// Its process group.
    pub group: u32,
    /// When it began: CLOCK_BOOTTIME, ns, cut to a tick.
    pub started: u64,
}

#[must_use]
pub fn stat(pid: u32) -> Option<Stat> {
    let fields = stat_fields(pid)?;
    let ticks = fields.get(19)?.parse::<u64>().ok()?;
    Some(Stat {
        dead: matches!(fields.first().map(String::as_str), Some("Z" | "X")),
        group: fields.get(2)?.parse().unwrap_or(0),
        started: ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)),
    })
}

/// Every process we can see, and what tells it apart.
#[must_use]
pub fn table() -> Vec<(u32, Stat)> {
    all().into_iter().filter_map(|pid| Some((pid, stat(pid)?))).collect()
}

#[must_use]
pub fn parent(pid: u32) -> Option<u32> {
    stat_fields(pid)?.get(1)?.parse().ok()
}

/// Dead and waiting to be reaped, or gone.
#[must_use]
pub fn is_dead(pid: u32) -> bool {
    match stat_fields(pid) {
        Some(fields) => matches!(fields.first().map(String::as_str), Some("Z" | "X")),
        None => true,
    }
}

/// Not dead yet, and without an environment to be known by: most likely on its way out, with its
/// memory gone already.
#[must_use]
pub fn is_dying(pid: u32) -> bool {
    let empty = read(pid, "environ", 1).is_none_or(|bytes| bytes.is_empty());
    empty && !is_dead(pid)
}

/// The address at which our own heap begins. Not by our number: in a namespace of its own that is
/// somebody else's where /proc was mounted.
pub(crate) fn heap_begin() -> Option<usize> {
    stat_fields("self")?.get(44)?.parse().ok()
}

/// CPU time of a process in nanoseconds.
#[must_use]
pub fn cpu_time(pid: u32) -> Option<u64> {
    let fields = stat_fields(pid)?;
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)))
}

/// Resident memory of a process in bytes.
#[must_use]
pub fn resident(pid: u32) -> Option<u64> {
    let bytes = read(pid, "statm", 256)?;
    let pages: u64 =
        String::from_utf8_lossy(&bytes).split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * u64::try_from(rustix::param::page_size()).unwrap_or(4096))
}

/// One variable of the environment that a process was started with.
#[must_use]
pub fn environ(pid: u32, name: &str) -> Option<String> {
    let bytes = read(pid, "environ", 256 << 10)?;
    bytes.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        String::from_utf8(value.to_vec()).ok()
    })
}

/// The command line, for people; kernel names in brackets when there is none.
#[must_use]
pub fn command(pid: u32) -> String {
    let line = read(pid, "cmdline", 1024).unwrap_or_default();
    if line.is_empty() {
        let name = read(pid, "comm", 64).unwrap_or_default();
        return format!("[{}]", String::from_utf8_lossy(&name).trim_end());
    }
    let text = String::from_utf8_lossy(&line).replace('\0', " ");
    text.trim_end().to_owned()
}

/// Different after every boot of the machine.
#[must_use]
pub fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// How many descriptors a process has open.
#[must_use]
pub fn open_files(pid: u32) -> Option<u64> {
    let dir = format!("/proc/{pid}/fd");
    // Kernels before 6.2 do not count them.
    match fs::metadata(&dir).ok()?.len() {
        0 => u64::try_from(fs::read_dir(&dir).ok()?.count()).ok(),
        count => Some(count),
    }
}

/// When a process began: CLOCK_BOOTTIME, ns.
#[must_use]
pub fn started(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.started)
}
