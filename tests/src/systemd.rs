//! A real systemd, as PID 1 of a container over the files of this machine. What it writes is gone
//! with it.

use crate::{Scratch, binary, proc, within};
use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// What a machine starts beside the node that is tried out.
const UNWANTED: &[&str] = &[
    "systemd-timesyncd.service",
    "systemd-networkd-wait-online.service",
    "systemd-udevd.service",
    "systemd-udev-trigger.service",
    "systemd-logind.service",
];
/// Asked to, it ends within this time, or is killed.
const POWER_OFF: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct Systemd {
    container: Child,
    manager: u32,
    _scratch: Scratch,
    _alone: File,
}

impl Systemd {
    /// Boots one with these files, by their paths below the root.
    ///
    /// # Errors
    ///
    /// Why this machine cannot.
    pub fn boot(files: &[(&str, &str)]) -> Result<Systemd, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root can boot a systemd".to_owned());
        }
        let alone = alone();
        let scratch = Scratch::new();
        let at = |name: &str| scratch.path().join(name);
        for dir in ["upper", "work", "root"] {
            fs::create_dir(at(dir)).expect("a directory of our own");
        }
        let system = at("upper/etc/systemd/system");
        fs::create_dir_all(&system).expect("a directory of our own");
        for unit in UNWANTED {
            symlink("/dev/null", system.join(unit)).expect("a link");
        }
        symlink("/lib/systemd/system/basic.target", system.join("default.target")).expect("a link");
        for (path, text) in files {
            let path = at("upper").join(path);
            fs::create_dir_all(path.parent().expect("below the root")).expect("a directory");
            fs::write(path, text).expect("a file of our own");
        }
        // Mounts of its own: they are gone with it.
        let boot = r#"mount -t overlay overlay \
            -o "lowerdir=/,upperdir=$PWD/upper,workdir=$PWD/work" root &&
            exec systemd-nspawn --quiet --directory=root --boot --register=no --keep-unit \
            --private-network --console=pipe --bind-ro="$1:/usr/local/bin/mainstay""#;
        let console = File::create(at("console")).expect("a file of our own");
        let mut container = Command::new("unshare")
            .args(["--mount", "--propagation=private", "sh", "-c", boot, "sh"])
            .arg(binary())
            .current_dir(scratch.path())
            .stdin(Stdio::null())
            .stdout(console.try_clone().expect("a second one"))
            .stderr(console)
            .spawn()
            .map_err(|error| format!("unshare: {error}"))?;
        let up = within(Duration::from_secs(60), "systemd is up", || {
            if container.try_wait().expect("our own child").is_some() {
                return Some(Err(fs::read_to_string(at("console")).unwrap_or_default()));
            }
            let manager = first_child(container.id())?;
            let asked = inside(manager, &["systemctl", "is-system-running"]);
            let said = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
            ["running", "degraded"].contains(&said.as_str()).then_some(Ok(manager))
        });
        let manager = up?;
        Ok(Systemd { container, manager, _scratch: scratch, _alone: alone })
    }

    /// Its root, as others reach it.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.manager))
    }

    /// The end of a command that runs in there, and what it wrote.
    #[must_use]
    pub fn run(&self, command: &[&str]) -> Output {
        inside(self.manager, command)
    }

    /// What a command writes that succeeds.
    pub fn must(&self, command: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.run(command);
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{command:?}: {status}\n{stderr}\n{}", self.journal());
        String::from_utf8_lossy(&stdout).trim().to_owned()
    }

    /// The last that was written to its journal.
    fn journal(&self) -> String {
        let journal = self.run(&["journalctl", "--no-pager", "--lines", "40"]);
        String::from_utf8_lossy(&journal.stdout).into_owned()
    }

    /// A property of a unit.
    #[must_use]
    pub fn show(&self, unit: &str, property: &str) -> String {
        self.must(&["systemctl", "show", "--value", "--property", property, unit])
    }
}

/// One at a time, of all tests on this machine: they have one tree of cgroups, in which every systemd
/// takes units of one name for its own.
fn alone() -> File {
    let path = std::env::temp_dir().join("mainstay-test-systemd.lock");
    let file = File::options().create(true).append(true).open(path).expect("a file of our own");
    file.lock().expect("nobody has it for long");
    file
}

/// The container's PID 1, once it is there.
fn first_child(pid: u32) -> Option<u32> {
    proc::children(pid).into_iter().find(|child| {
        fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|it| it.trim() == "systemd")
    })
}

fn inside(manager: u32, command: &[&str]) -> Output {
    Command::new("nsenter")
        .args(["--target", &manager.to_string(), "--mount", "--uts", "--ipc", "--pid", "--net"])
        .args(command)
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .expect("nsenter")
}

impl Drop for Systemd {
    fn drop(&mut self) {
        let _ = self.run(&["systemctl", "--no-block", "poweroff"]);
        let begun = Instant::now();
        while begun.elapsed() < POWER_OFF {
            if matches!(self.container.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.container.kill();
        let _ = self.container.wait();
    }
}
