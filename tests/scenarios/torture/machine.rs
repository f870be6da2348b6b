//! The machine under a node, and what can be wrong with it: each fault comes, lasts a moment, and
//! goes. What this machine has no means for is told and left out.

use mainstay_tests::{Node, Random, Setup, own_names};
use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, UdpSocket},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing under the state directory can be written; whoever tries waits.
    FrozenDisk,
    FullState,
    FullRun,
    /// Neither a process nor a thread can be had.
    NoProcesses,
    /// Keeper and agent get no descriptor beyond those they have.
    NoDescriptors,
    /// Something in the node's cgroup takes all its memory, until the kernel kills it.
    NoMemory,
    /// Bytes of the journal are changed, cut or gone.
    DamagedJournal,
    /// The name server is there, and silent.
    HungDns,
    /// A check does not come back.
    HungCheck,
}

/// Jobs with a check: of a file, of a name that the hosts file has, and of one that nobody has.
pub(super) const CHECKED: [&str; 2] = ["checked", "known"];

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::FrozenDisk => "a frozen disk",
            Fault::FullState => "a full state directory",
            Fault::FullRun => "a full run directory",
            Fault::NoProcesses => "no processes and threads",
            Fault::NoDescriptors => "no descriptors",
            Fault::NoMemory => "no memory",
            Fault::DamagedJournal => "a damaged journal",
            Fault::HungDns => "a silent name server",
            Fault::HungCheck => "a hung check",
        })
    }
}

/// Disks of its own for the directories of a node, and groups that limit all of it.
#[derive(Debug)]
pub(super) struct Machine {
    pids: Option<Group>,
    memory: Option<Group>,
    loops: bool,
    notes: PathBuf,
    /// Answers every request well.
    web: u16,
    name_server: Ipv4Addr,
}

/// For the largest that a node with a hundred jobs needs.
const MEMORY: u64 = 1 << 30;

impl Machine {
    pub(super) fn new(notes: &Path) -> Machine {
        let runs = |program: &str, arg: &str| {
            let ran = Command::new(program).arg(arg).output();
            ran.is_ok_and(|output| output.status.success())
        };
        let loops = runs("losetup", "-f") && runs("fsfreeze", "--version");
        let [.., high, low] = std::process::id().to_be_bytes();
        let machine = Machine {
            pids: Group::new("pids"),
            memory: Group::new("memory"),
            loops,
            notes: notes.to_owned(),
            web: serve(),
            name_server: Ipv4Addr::new(127, 78, high, low.max(1)),
        };
        if let Some(memory) = &machine.memory {
            memory.set(&["memory.limit_in_bytes", "memory.max"], &MEMORY.to_string());
        }
        machine
    }

    /// What can be wrong with it; the rest is told.
    pub(super) fn faults(&self) -> Vec<Fault> {
        let mut faults = vec![Fault::FullState, Fault::FullRun, Fault::NoDescriptors];
        faults.extend([Fault::DamagedJournal, Fault::HungDns, Fault::HungCheck]);
        let some = [
            (Fault::FrozenDisk, self.loops, "no loop device or fsfreeze"),
            (Fault::NoProcesses, self.pids.is_some(), "no cgroup that limits pids"),
            (Fault::NoMemory, self.memory.is_some(), "no cgroup that limits memory"),
        ];
        for (fault, possible, without) in some {
            match possible {
                true => faults.push(fault),
                false => println!("left out here: {fault} ({without})"),
            }
        }
        faults
    }

    /// Directories on disks of their own, everything within the groups.
    pub(super) fn under(&self, setup: Setup) -> Setup {
        let groups = self.pids.iter().chain(&self.memory);
        let enter: String = groups
            .map(|group| format!("echo $$ >'{}'\n", group.dir.join("cgroup.procs").display()))
            .collect();
        let state = match self.loops {
            true => {
                "truncate -s 48M disk; mkfs.ext4 -q -m 0 disk
                 mount -o loop disk \"$MAINSTAY_STATE_DIR\""
            }
            false => "mount -t tmpfs -o size=48m,mode=700 none \"$MAINSTAY_STATE_DIR\"",
        };
        setup.with_mounts(&format!(
            "{enter}mkdir -p \"$MAINSTAY_STATE_DIR\" \"$MAINSTAY_RUN_DIR\"
             mount -t tmpfs -o size=24m,mode=711 none \"$MAINSTAY_RUN_DIR\"
             {}
             {state}",
            own_names(&self.name_server.to_string(), "known.test")
        ))
    }

    /// Jobs of [`CHECKED`], and one whose name nobody knows.
    pub(super) fn checked_jobs(&self) -> String {
        let job = |name: &str, check: &str| {
            format!(
                "[jobs.{name}]\nexec = \"sleep 100000\"\nrestart = {{ on = \"any\", delay = \"100ms\", \
                 max_delay = \"1s\" }}\nhealth = {{ name = \"it\", {check}, interval = \"300ms\", \
                 timeout = \"500ms\", fall = 1 }}\n"
            )
        };
        let hangs = format!("while [ -e '{}' ]; do sleep 0.1; done", self.hang().display());
        let url = |host: &str| format!("http = {{ url = \"http://{host}:{}/\" }}", self.web);
        job("checked", &format!("exec = [\"sh\", \"-c\", \"{hangs}\"]"))
            + &job("known", &url("known.test"))
            + &job("unknown", &url("unknown.test"))
    }

    /// While there is such a file the check does not come back.
    fn hang(&self) -> PathBuf {
        self.notes.join("hang")
    }

    pub(super) fn begin(&self, fault: Fault, node: &Node, random: &mut Random) -> Trouble {
        let filled = |dir: PathBuf| {
            let path = dir.join("filling");
            fill(&path);
            Trouble::Filled(path)
        };
        match fault {
            Fault::FullState => filled(node.state_dir()),
            Fault::FullRun => filled(node.run_dir()),
            Fault::FrozenDisk => {
                freeze("-f", &node.state_dir());
                Trouble::Frozen(node.state_dir())
            }
            Fault::NoProcesses => {
                let group = self.pids.clone().expect("it was asked for");
                group.set(&["pids.max"], &random.within(0..3).to_string());
                Trouble::Limited(group)
            }
            Fault::NoDescriptors => {
                let both = [Some(node.keeper()), node.try_agent()].into_iter().flatten();
                Trouble::Descriptors(both.map(|pid| (pid, limit_files(pid, None))).collect())
            }
            Fault::NoMemory => {
                let group = self.memory.as_ref().expect("it was asked for");
                Trouble::Hog(hog(group))
            }
            Fault::DamagedJournal => {
                damage(&node.run_dir().join("journal"), random);
                Trouble::Past
            }
            Fault::HungDns => {
                let server = UdpSocket::bind((self.name_server, 53));
                Trouble::Silence { _server: server.expect("nobody else has this address") }
            }
            Fault::HungCheck => {
                fs::write(self.hang(), "").expect("our own directory");
                Trouble::Hang(self.hang())
            }
        }
    }
}

/// A fault that is there. It is over when this is dropped.
#[derive(Debug)]
pub(super) enum Trouble {
    Filled(PathBuf),
    Frozen(PathBuf),
    Limited(Group),
    /// The limits that there were.
    Descriptors(Vec<(u32, String)>),
    Hog(Child),
    /// It was done in a moment.
    Past,
    /// Hears, and says nothing.
    Silence {
        _server: UdpSocket,
    },
    /// The file that a check waits for.
    Hang(PathBuf),
}

impl Trouble {
    /// What has to hold while it is there.
    pub(super) fn judge(&self, node: &Node) {
        match self {
            Trouble::Silence { .. } => drop(node.until_health("known", "healthy")),
            Trouble::Hang(_) => drop(node.until_health("checked", "unhealthy")),
            Trouble::Filled(_)
            | Trouble::Frozen(_)
            | Trouble::Limited(_)
            | Trouble::Descriptors(_)
            | Trouble::Hog(_)
            | Trouble::Past => {}
        }
    }
}

impl Drop for Trouble {
    fn drop(&mut self) {
        match self {
            Trouble::Filled(path) => fs::remove_file(path).expect("it is there"),
            Trouble::Frozen(dir) => freeze("-u", dir),
            Trouble::Limited(group) => group.set(&["pids.max"], "max"),
            Trouble::Descriptors(limits) => {
                for (pid, limit) in limits {
                    limit_files(*pid, Some(limit));
                }
            }
            Trouble::Hog(child) => {
                let _ = child.kill();
                let _ = child.wait();
            }
            Trouble::Hang(file) => fs::remove_file(file).expect("it is there"),
            Trouble::Silence { .. } | Trouble::Past => {}
        }
    }
}

/// Takes all the room that is left.
fn fill(path: &Path) {
    let file = OpenOptions::new().create(true).append(true).open(path);
    // Not even an inode is left: full enough.
    let Ok(mut file) = file else { return drop(File::create(path)) };
    for size in [64 << 10, 4096, 1] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
}

/// Changes a byte of what it says, cuts it, or removes it.
fn damage(journal: &Path, random: &mut Random) {
    let Ok(bytes) = fs::read(journal) else { return };
    let length = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0) as u64;
    let file = OpenOptions::new().write(true).open(journal).expect("our own file");
    let at = random.within(0..length.max(1));
    match random.within(0..3) {
        0 => file.write_all_at(&[bytes[usize::try_from(at).expect("small")] ^ 4], at),
        1 => file.set_len(at),
        _ => fs::remove_file(journal),
    }
    .expect("our own file");
}

/// A web server, and its port.
fn serve() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    port
}

fn freeze(flag: &str, dir: &Path) {
    let done = Command::new("fsfreeze").arg(flag).arg(dir).status();
    assert!(done.is_ok_and(|status| status.success()), "fsfreeze {flag} {}", dir.display());
}

/// Sets the soft limit of files to what is open, or back; what it was.
fn limit_files(pid: u32, to: Option<&str>) -> String {
    let prlimit =
        |args: &[String]| Command::new("prlimit").arg(format!("--pid={pid}")).args(args).output();
    let now = prlimit(&["--nofile", "--output=SOFT", "--noheadings", "--raw"].map(String::from));
    let now = String::from_utf8_lossy(&now.expect("prlimit").stdout).trim().to_owned();
    let open = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    let to = to.map_or_else(|| open.to_string(), str::to_owned);
    // It may have ended since.
    let _ = prlimit(&[format!("--nofile={to}:")]);
    now
}

/// A process of the group that takes memory until it is killed.
fn hog(group: &Group) -> Child {
    let enter = group.dir.join("cgroup.procs");
    Command::new("sh")
        .args(["-c", "echo $$ >\"$1\"; exec tail /dev/zero", "sh"])
        .arg(enter)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell")
}

/// A cgroup of our own with one controller, which goes when its last user does.
#[derive(Debug, Clone)]
pub(super) struct Group {
    dir: PathBuf,
}

impl Group {
    fn new(controller: &str) -> Option<Group> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let of = |line: &str| {
            let mut fields = line.split(' ').skip(1);
            let (at, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
            let old = kind == "cgroup" && options.split(',').any(|it| it == controller);
            let new = kind == "cgroup2" && offers(Path::new(at), controller);
            (old || new).then(|| PathBuf::from(at))
        };
        let root = mounts.lines().find_map(of)?;
        let dir = root.join(format!("mainstay-torture-{}", std::process::id()));
        fs::create_dir(&dir).ok()?;
        Some(Group { dir })
    }

    /// Under the first of these names that there is.
    fn set(&self, names: &[&str], value: &str) {
        let file = names.iter().map(|name| self.dir.join(name)).find(|file| file.exists());
        let file = file.expect("the controller has it");
        fs::write(&file, value).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

/// Whether groups below the root of cgroup2 can have the controller.
fn offers(root: &Path, controller: &str) -> bool {
    fs::write(root.join("cgroup.subtree_control"), format!("+{controller}")).is_ok()
}

impl Drop for Machine {
    fn drop(&mut self) {
        for group in self.pids.iter().chain(&self.memory) {
            let _ = fs::remove_dir(&group.dir);
        }
    }
}
