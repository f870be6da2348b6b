//! What /proc tells about the processes of a test.

use std::{fs, path::PathBuf};

/// A field of `/proc/PID/status`.
#[must_use]
pub fn status(pid: u32, field: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))
        .unwrap_or_else(|error| panic!("process {pid} is not there: {error}"));
    let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("{field} is not in {text}")).trim().to_owned()
}

/// The most memory that a process has ever used, in KiB.
#[must_use]
pub fn high_water(pid: u32) -> u64 {
    let text = status(pid, "VmHWM");
    text.trim_end_matches(" kB").trim().parse().expect("a number of kB")
}

/// What its descriptors are open on, by number.
#[must_use]
pub fn descriptors(pid: u32) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).expect("the process is there");
    let mut open: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.file_name().to_str()?.parse().ok()?, fs::read_link(entry.path()).ok()?))
        })
        .collect();
    open.sort();
    open
}

/// The children of its first thread.
#[must_use]
pub fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// A limit: soft and hard, as text.
#[must_use]
pub fn limit(pid: u32, name: &str) -> (String, String) {
    let text = fs::read_to_string(format!("/proc/{pid}/limits")).expect("the process is there");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a known limit");
    let mut words = line.split_ascii_whitespace().map(str::to_owned);
    (words.next().expect("soft"), words.next().expect("hard"))
}

/// Processor time used so far, in ticks of 10 ms.
#[must_use]
pub fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process is there");
    let rest = stat.rsplit(')').next().expect("fields");
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    fields[11..13].iter().filter_map(|field| field.parse::<u64>().ok()).sum()
}
