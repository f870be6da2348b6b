//! Control groups, version 2: a few files.
//!
//! ```text
//! <where we were started>/mainstay-<run>/keeper      keeper and agent
//!                                       /jobs/<job>  one leaf a job
//!                                       /tasks/<n>   one leaf a task, for as long as it runs
//! ```

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

/// What ends with a run is gone within so many looks, unless a disk holds it.
const LAST_LOOKS: u32 = 50;
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// The v2 hierarchy: which group it shows from, and where.
fn hierarchy() -> Option<(String, PathBuf)> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut fields = left.split(' ').skip(3);
        let (root, mount) = (fields.next()?, fields.next()?);
        right.starts_with("cgroup2 ").then(|| (root.to_owned(), mount.into()))
    })
}

/// Where the groups of a run are, wherever it was started. Nobody else's have its name.
#[must_use]
pub fn find(run: &str) -> Option<PathBuf> {
    let name = format!("mainstay-{run}");
    let mut dirs = vec![hierarchy()?.1];
    while let Some(dir) = dirs.pop() {
        let entries = fs::read_dir(&dir).into_iter().flatten().filter_map(Result::ok);
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            if entry.file_name() == name.as_str() {
                return Some(entry.path());
            }
            dirs.push(entry.path());
        }
    }
    None
}

/// Where this process lives in the v2 hierarchy, as a directory.
#[must_use]
pub fn own() -> Option<PathBuf> {
    let (root, mount) = hierarchy()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let below = path.strip_prefix(root.trim_end_matches('/')).unwrap_or(path);
    Some(mount.join(below.trim_start_matches('/')))
}

/// Whether there are controllers here that can limit memory, processors and processes.
#[must_use]
pub fn may_limit() -> bool {
    let text = own().and_then(|own| fs::read_to_string(own.join("cgroup.controllers")).ok());
    let text = text.unwrap_or_default();
    ["cpu", "memory", "pids"].iter().all(|it| text.split_whitespace().any(|word| word == *it))
}

/// The groups of one run of the node.
#[derive(Debug, Clone)]
pub struct Root {
    path: PathBuf,
    /// Jobs' groups can be limited: there are controllers.
    limits: bool,
}

/// What a job's group may be limited in, where the controllers are at hand.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    pub memory: Option<u64>,
    pub cpus: Option<f64>,
    pub pids: Option<u64>,
}

const CONTROLLERS: [&str; 3] = ["memory", "cpu", "pids"];

impl Root {
    /// Makes the groups of a run below `own` and moves this process into its leaf.
    ///
    /// # Errors
    /// When the hierarchy cannot be written: then there are no groups.
    pub fn create(own: &Path, run: &str) -> io::Result<Root> {
        let root = Root::at(own.join(format!("mainstay-{run}")));
        fs::create_dir(&root.path)?;
        let made = root.furnish(own);
        if made.is_err() {
            root.remove();
        }
        made.map(|()| Root::at(root.path))
    }

    fn furnish(&self, own: &Path) -> io::Result<()> {
        fs::create_dir(self.leaf())?;
        fs::create_dir(self.jobs())?;
        enter(&self.leaf())?;
        // A group with members cannot give controllers to its children: where others live beside
        // us this fails, and limits are reported as not enforced.
        for controller in listed(&own.join("cgroup.controllers")) {
            for group in [own, &self.path, &self.jobs()] {
                let _ = write(&group.join("cgroup.subtree_control"), &format!("+{controller}"));
            }
        }
        Ok(())
    }

    /// The groups of a run that another process made.
    #[must_use]
    pub fn at(path: PathBuf) -> Root {
        let limits = has_controllers(&path.join("jobs"));
        Root { path, limits }
    }

    /// A group that is there: of a job, or one of a task.
    #[must_use]
    pub fn group(&self, path: PathBuf) -> Group {
        match path.parent() == Some(self.jobs().as_path()) {
            // As for all of them: thousands need not each ask the kernel.
            true => Group { path, limits: self.limits },
            false => Group::at(path),
        }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn jobs(&self) -> PathBuf {
        self.path.join("jobs")
    }

    /// The group of a job, made if it is not there.
    ///
    /// # Errors
    /// As mkdir(2).
    pub fn job(&self, name: &str) -> io::Result<Group> {
        let group = Group { path: self.jobs().join(name), limits: self.limits };
        match fs::create_dir(&group.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(group),
        }
    }

    /// The same with a descriptor to clone into, as far as one is to be had. `again`: it was there
    /// before, and usually still is.
    ///
    /// # Errors
    /// As mkdir(2).
    pub fn open_job(&self, name: &str, again: bool) -> io::Result<(Group, Option<OwnedFd>)> {
        if again {
            let group = Group { path: self.jobs().join(name), limits: self.limits };
            if let Ok(fd) = group.open() {
                return Ok((group, Some(fd)));
            }
        }
        let group = self.job(name)?;
        let fd = group.open().ok();
        Ok((group, fd))
    }

    fn tasks(&self) -> PathBuf {
        self.path.join("tasks")
    }

    /// A group for one task. Nobody limits it.
    ///
    /// # Errors
    /// As mkdir(2).
    pub fn task(&self, number: u64) -> io::Result<Group> {
        let group = Group { path: self.tasks().join(number.to_string()), limits: false };
        match fs::create_dir(&group.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir(self.tasks())?;
                fs::create_dir(&group.path)?;
            }
            made => made?,
        }
        Ok(group)
    }

    /// Every group of a job or task that is there.
    #[must_use]
    pub fn all(&self) -> Vec<Group> {
        self.below(&self.jobs()).chain(self.below(&self.tasks())).collect()
    }

    /// Every task's group that is there.
    #[must_use]
    pub fn all_tasks(&self) -> Vec<Group> {
        self.below(&self.tasks()).collect()
    }

    fn below(&self, path: &Path) -> impl Iterator<Item = Group> {
        let entries = fs::read_dir(path).into_iter().flatten();
        entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| Group { path: entry.path(), limits: self.limits })
    }

    /// Leaves our leaf and removes all groups that are empty. At the very end of a run: it waits a
    /// moment for what is about to be gone.
    pub fn leave(&self) {
        let Some(own) = self.path.parent() else { return };
        for controller in listed(&own.join("cgroup.subtree_control")) {
            let _ = write(&own.join("cgroup.subtree_control"), &format!("-{controller}"));
        }
        let _ = enter(own);
        for _ in 0..LAST_LOOKS {
            self.remove();
            if !self.path.exists() {
                return;
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Where keeper and agent are.
    fn leaf(&self) -> PathBuf {
        self.path.join("keeper")
    }

    /// Removes all groups that are empty.
    pub fn remove(&self) {
        for group in self.all() {
            group.remove();
        }
        for path in [self.jobs(), self.tasks(), self.leaf(), self.path.clone()] {
            let _ = fs::remove_dir(path);
        }
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

/// Those of our controllers that stand in a file. Asking for one that is not there takes
/// milliseconds where many groups have died.
fn listed(path: &Path) -> Vec<&'static str> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let stands = |controller: &&str| text.split_whitespace().any(|word| word == *controller);
    CONTROLLERS.into_iter().filter(stands).collect()
}

/// Whether the children of a group have controllers.
fn has_controllers(group: &Path) -> bool {
    fs::read_to_string(group.join("cgroup.subtree_control"))
        .is_ok_and(|text| !text.trim().is_empty())
}

fn enter(group: &Path) -> io::Result<()> {
    write(&group.join("cgroup.procs"), "0")
}

/// The group of one job or task: its tree.
#[derive(Debug, Clone)]
pub struct Group {
    path: PathBuf,
    limits: bool,
}

impl Group {
    #[must_use]
    pub fn at(path: PathBuf) -> Group {
        let limits = path.parent().is_some_and(has_controllers);
        Group { path, limits }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A descriptor to clone into.
    ///
    /// # Errors
    /// As open(2).
    pub fn open(&self) -> io::Result<OwnedFd> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&self.path, flags, Mode::empty())?)
    }

    #[must_use]
    pub fn procs_file(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    #[must_use]
    pub fn procs(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.procs_file()).unwrap_or_default();
        // A process of another pid namespace is shown as 0.
        text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid != 0).collect()
    }

    /// Whether anybody is left in it or below it.
    #[must_use]
    pub fn populated(&self) -> bool {
        let mut start = [0; 64];
        let count =
            File::open(self.path.join("cgroup.events")).and_then(|mut file| file.read(&mut start));
        count.is_ok_and(|count| {
            start[..count].split(|byte| *byte == b'\n').any(|line| line == b"populated 1")
        })
    }

    /// Becomes readable (as priority data) whenever `populated` changes.
    ///
    /// # Errors
    /// As open(2).
    pub fn events(&self) -> io::Result<File> {
        let mut file = File::open(self.path.join("cgroup.events"))?;
        // Only changes after a read are told.
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok(file)
    }

    /// SIGKILL to everything in it. Afterwards it has to be removed: Linux 6.14 and later kill
    /// whatever is cloned into a group on which `cgroup.kill` was ever used (they compare its count
    /// of kills with that of the parent's group).
    pub fn kill(&self) {
        if write(&self.path.join("cgroup.kill"), "1").is_err() {
            for pid in self.procs() {
                let _ = crate::signal::send(pid, libc::SIGKILL);
            }
        }
    }

    /// Sets the limits; returns the names of those that no controller enforces here.
    #[must_use]
    pub fn limit(&self, limits: &Limits) -> Vec<&'static str> {
        const PERIOD_US: f64 = 100_000.0;
        let cpus = limits.cpus.map(|cpus| format!("{:.0} {PERIOD_US:.0}", cpus * PERIOD_US));
        let settings = [
            ("memory", "memory.max", limits.memory.map(|bytes| bytes.to_string())),
            ("cpus", "cpu.max", cpus),
            ("pids", "pids.max", limits.pids.map(|count| count.to_string())),
        ];
        let mut unenforced = Vec::new();
        for (name, file, value) in settings {
            let wanted = value.is_some();
            if !self.limits {
                unenforced.extend(wanted.then_some(name));
                continue;
            }
            let path = self.path.join(file);
            // A limit that was taken back must not stay from an earlier incarnation.
            if write(&path, value.as_deref().unwrap_or("max")).is_err() && wanted {
                unenforced.push(name);
            }
        }
        unenforced
    }

    /// How often the kernel has killed in this group for want of memory.
    #[must_use]
    pub fn oom_kills(&self) -> u64 {
        if !self.limits {
            return 0;
        }
        self.keyed("memory.events", "oom_kill").unwrap_or(0)
    }

    /// Nanoseconds.
    #[must_use]
    pub fn cpu_time(&self) -> Option<u64> {
        self.keyed("cpu.stat", "usage_usec").map(|us| us * 1000)
    }

    #[must_use]
    pub fn memory_current(&self) -> Option<u64> {
        fs::read_to_string(self.path.join("memory.current")).ok()?.trim().parse().ok()
    }

    #[must_use]
    pub fn memory_max(&self) -> Option<u64> {
        fs::read_to_string(self.path.join("memory.max")).ok()?.trim().parse().ok()
    }

    fn keyed(&self, file: &str, key: &str) -> Option<u64> {
        let text = fs::read_to_string(self.path.join(file)).ok()?;
        text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
    }

    /// Removes it and what processes in it have made below it, as far as they are empty.
    pub fn remove(&self) {
        if let Err(error) = fs::remove_dir(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            let entries = fs::read_dir(&self.path).into_iter().flatten().filter_map(Result::ok);
            for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
                Group { path: entry.path(), limits: false }.remove();
            }
            let _ = fs::remove_dir(&self.path);
        }
    }
}
