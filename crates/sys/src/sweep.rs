//! Killing what a dead keeper left behind, and nobody else.
//!
//! The kernel has killed its direct children. What they had started is found by the cgroups that
//! the run directory names, by the cookie in their environment, and by the groups of its leaders.
//! A number may be somebody else's by now, so each is proven first:
//!
//! | the leader of a group | the group is ours |
//! |---|---|
//! | is there, dead or alive | if it began no later than we noted: whoever has the number since began later |
//! | is gone | if a member began before the last sign of life of the run, when the leader held the number |
//!
//! A signal goes through a pidfd that was opened before the last look: never to a newcomer.

use crate::{
    cgroup, cookie,
    proc::{self, Stat},
    signal,
};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::{
    collections::{BTreeMap, HashSet},
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

/// A run whose keeper is dead, as far as its directory tells.
#[derive(Debug, Clone)]
pub struct DeadRun {
    pub run: String,
    /// The boot of the machine that it belonged to.
    pub boot: String,
    pub cgroup: Option<PathBuf>,
    /// Leaders of the process groups of its jobs.
    pub leaders: Vec<Leader>,
    /// When the run last gave a sign of life: CLOCK_BOOTTIME, ns.
    pub alive_at: u64,
}

/// The leader of a process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leader {
    pub pid: u32,
    /// It had begun by then: CLOCK_BOOTTIME, ns.
    pub begun_by: u64,
}

/// A process that was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    pub pid: u32,
    pub command: String,
    pub found: FoundBy,
}

/// What showed that a process was ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    Cgroup,
    Cookie,
    Group,
}

impl Swept {
    /// While it is still alive: the dead have no command.
    fn new(pid: u32, found: FoundBy) -> Swept {
        Swept { pid, command: proc::command(pid), found }
    }
}

impl FoundBy {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            FoundBy::Cgroup => "cgroup",
            FoundBy::Cookie => "cookie",
            FoundBy::Group => "group",
        }
    }
}

impl DeadRun {
    /// Kills what is left of it; whom it found.
    pub fn kill(&self) -> Vec<Swept> {
        let (root, swept) = kill(self);
        if let Some(root) = root {
            root.remove();
        }
        swept
    }

    /// As one of it, its agent: kills all but itself, and leaves the cgroup that it lives in.
    pub fn kill_and_leave(&self) {
        if let (Some(root), _) = kill(self) {
            root.leave();
        }
    }

    /// Its groups, if that is where they are: a name that we would have given.
    fn root(&self) -> Option<cgroup::Root> {
        let path = self.cgroup.as_ref()?;
        let name = path.file_name()?.to_str()?;
        (name == format!("mainstay-{}", self.run)).then(|| cgroup::Root::at(path.clone()))
    }
}

/// Which groups are known to be ours. As long as one has members nobody else can get its number.
struct Groups<'a> {
    run: &'a DeadRun,
    proven: HashSet<u32>,
}

impl Groups<'_> {
    fn prove(&mut self, table: &[(u32, Stat)]) {
        for Leader { pid, begun_by } in &self.run.leaders {
            let ours = match proc::stat(*pid) {
                Some(leader) => leader.started <= *begun_by,
                None => {
                    table.iter().any(|(_, it)| it.group == *pid && it.started <= self.run.alive_at)
                }
            };
            if ours {
                self.proven.insert(*pid);
            }
        }
    }

    /// A leader of ours that has no memory any more, and so no cookie, but still its group.
    fn has_dying_leader(&self) -> bool {
        self.run.leaders.iter().any(|it| self.proven.contains(&it.pid) && proc::is_dying(it.pid))
    }
}

/// Kills every cgroup, group and cookie holder; where the cgroups were, and whom it found.
fn kill(run: &DeadRun) -> (Option<cgroup::Root>, Vec<Swept>) {
    if run.boot != proc::boot_id() {
        return (None, Vec::new());
    }
    let root = run.root();
    let mut groups = Groups { run, proven: HashSet::new() };
    let mut swept = BTreeMap::new();
    let end = Instant::now() + Duration::from_secs(2);
    loop {
        let mut found = root.as_ref().map(in_cgroups).unwrap_or_default();
        let table = proc::table();
        groups.prove(&table);
        let dying = groups.has_dying_leader();
        found.extend(table.iter().filter_map(|(pid, stat)| {
            let one = Swept::new(*pid, whose(run, &groups, *pid, stat)?);
            kill_one(*pid, stat).then_some(one)
        }));
        let nobody = found.is_empty() && !dying;
        for one in found {
            swept.entry(one.pid).or_insert(one);
        }
        if nobody || Instant::now() > end {
            break;
        }
        // Nobody tells us when a process that is not our child has gone.
        thread::sleep(Duration::from_millis(5));
    }
    (root, swept.into_values().collect())
}

/// Kills every cgroup that has members; who these were.
fn in_cgroups(root: &cgroup::Root) -> Vec<Swept> {
    let mut found = Vec::new();
    for group in root.all().iter().filter(|group| group.populated()) {
        found.extend(group.procs().into_iter().map(|pid| Swept::new(pid, FoundBy::Cgroup)));
        group.kill();
    }
    found
}

fn whose(run: &DeadRun, groups: &Groups<'_>, pid: u32, stat: &Stat) -> Option<FoundBy> {
    if stat.dead || pid == signal::own_pid() {
        None
    } else if cookie::of_run(pid, &run.run) {
        Some(FoundBy::Cookie)
    } else {
        groups.proven.contains(&stat.group).then_some(FoundBy::Group)
    }
}

/// Kills the process that was looked at, and no other that has its number since.
fn kill_one(pid: u32, seen: &Stat) -> bool {
    let Some(target) = i32::try_from(pid).ok().filter(|pid| *pid > 1).and_then(Pid::from_raw)
    else {
        return false;
    };
    let handle = pidfd_open(target, PidfdFlags::empty());
    let same = proc::stat(pid).is_some_and(|now| now.started == seen.started && !now.dead);
    match handle {
        Ok(handle) if same => pidfd_send_signal(&handle, Signal::KILL).is_ok(),
        // Where there are no pidfds the last look has to do.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) if same => {
            signal::send(pid, libc::SIGKILL).is_ok()
        }
        Ok(_) | Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use std::{
        io::{BufRead, BufReader},
        os::unix::process::CommandExt,
        process::{Child, Command, Stdio, id},
    };

    fn run(leaders: Vec<Leader>, alive_at: u64) -> DeadRun {
        let (run, boot) = ("0123456789abcdef".to_owned(), proc::boot_id());
        DeadRun { run, boot, cgroup: None, leaders, alive_at }
    }

    fn is_there(pid: u32) -> bool {
        !proc::is_dead(pid)
    }

    /// A group whose leader ends at once, and the member that stays: (leader, member).
    fn orphaned_group() -> (u32, u32) {
        let mut leader: Child = Command::new("sh")
            .args(["-c", "sleep 1000 >/dev/null & echo $!"])
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = String::new();
        let out = leader.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        leader.wait().expect("our own child");
        (leader.id(), line.trim().parse().expect("a pid"))
    }

    #[test]
    fn an_unrelated_group_with_the_number_of_a_former_leader_survives() {
        let before = clock::boottime();
        // A tick of the kernel's clock of processes.
        thread::sleep(Duration::from_millis(20));
        let (leader, member) = orphaned_group();
        let swept = run(vec![Leader { pid: leader, begun_by: before }], before).kill();
        assert_eq!(swept, []);
        assert!(is_there(member));
        let ours = run(vec![Leader { pid: leader, begun_by: before }], clock::boottime());
        let swept = ours.kill();
        assert_eq!(
            swept.iter().map(|it| (it.pid, it.found)).collect::<Vec<_>>(),
            [(member, FoundBy::Group)]
        );
        assert!(!is_there(member));
    }

    #[test]
    fn a_leader_that_began_later_than_was_noted_is_somebody_else() {
        let before = clock::boottime();
        thread::sleep(Duration::from_millis(20));
        let mut other = Command::new("sleep").arg("1000").process_group(0).spawn().expect("sleep");
        let number = other.id();
        // Long dead as far as we know, and its number was given away.
        let now = clock::boottime();
        assert_eq!(run(vec![Leader { pid: number, begun_by: before }], now).kill(), []);
        assert!(is_there(number));
        let swept = run(vec![Leader { pid: number, begun_by: now }], 0).kill();
        assert_eq!(swept.len(), 1);
        other.wait().expect("our own child");
    }

    #[test]
    fn who_carries_the_cookie_is_ours_and_who_carries_another_is_not() {
        let carrier = |run: &str| {
            let mut command = Command::new("sleep");
            command.arg("1000").env(cookie::RUN, run).env(cookie::JOB, "job");
            command.spawn().expect("sleep")
        };
        // No other test sweeps these.
        let [our_run, other_run] = [1, 2].map(|n| format!("{:016x}", u64::from(id()) << 8 | n));
        let (mut ours, mut other) = (carrier(&our_run), carrier(&other_run));
        // Until exec the environment is that of the test.
        let known = |pid: u32, run: &str| {
            while !cookie::of_run(pid, run) {
                thread::yield_now()
            }
        };
        known(ours.id(), &our_run);
        known(other.id(), &other_run);
        let swept = DeadRun { run: our_run, ..run(Vec::new(), 0) }.kill();
        assert_eq!(swept.iter().map(|it| it.pid).collect::<Vec<_>>(), [ours.id()]);
        assert_eq!(swept[0].command, "sleep 1000");
        assert!(is_there(other.id()));
        ours.wait().expect("our own child");
        other.kill().expect("our own child");
        other.wait().expect("our own child");
    }

    #[test]
    fn a_cgroup_that_is_not_named_after_the_run_is_not_touched() {
        let mut dead = run(Vec::new(), 0);
        dead.cgroup = Some("/sys/fs/cgroup/system.slice".into());
        assert!(dead.root().is_none());
        dead.cgroup = Some("/sys/fs/cgroup/mainstay-0123456789abcdef".into());
        assert!(dead.root().is_some());
    }
}
