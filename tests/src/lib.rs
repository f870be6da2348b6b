//! The driver of the black-box tests: starts nodes of the built binary in directories of their own,
//! asks them as a user would, and leaves nothing behind.

mod consul;
mod control;
mod events;
mod frozen;
mod network;
mod node;
pub mod proc;
mod random;
mod rolled_out;
mod systemd;
mod terminal;
mod wait;
mod watched;
pub mod writer;

pub use consul::Consul;
pub use control::Control;
pub use events::Events;
pub use frozen::{FrozenDisk, no_frozen_disk};
pub use network::{Network, Switch};
pub use node::{Command, Node, Setup};
pub use random::Random;
pub use rolled_out::{RolledOut, put_profile};
pub use systemd::Systemd;
pub use terminal::{Terminal, on_terminal};
pub use wait::{until, until_ok, within};
pub use watched::{Reached, Watched};

use std::path::{Path, PathBuf};

/// Mounts for a node that asks this name server and finds 127.0.0.1 under this name in its hosts
/// file, which a small machine need not have.
#[must_use]
pub fn own_names(name_server: &str, host: &str) -> String {
    format!(
        "cp -a /etc etc; rm -f etc/resolv.conf; echo nameserver {name_server} >etc/resolv.conf
         echo 127.0.0.1 {host} >>etc/hosts; mount --bind etc /etc"
    )
}

/// The binary under test: `MAINSTAY_BIN`, else the one that was built beside this test.
#[must_use]
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("MAINSTAY_BIN") {
        return path.into();
    }
    let own = std::env::current_exe().expect("a test knows where it is");
    let built = own.ancestors().nth(2).expect("target/PROFILE/deps/TEST").join("mainstay");
    assert!(built.exists(), "{} is not there: build it first with 'cargo build'", built.display());
    built
}

/// A directory that is removed with everything in it.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch::new()
    }
}

impl Scratch {
    #[must_use]
    pub fn new() -> Scratch {
        Scratch::ending(b"")
    }

    /// One whose name ends with these bytes.
    #[must_use]
    pub fn ending(end: &[u8]) -> Scratch {
        use std::os::unix::ffi::OsStrExt;
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("mainstay-test-{}-{number}", std::process::id());
            let name = [name.as_bytes(), end].concat();
            let path = std::env::temp_dir().join(std::ffi::OsStr::from_bytes(&name));
            match std::fs::create_dir(&path) {
                Ok(()) => return Scratch { path },
                // Left behind by a test that was killed and had the same pid.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{} cannot be made: {error}", path.display()),
            }
        }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it to a user.
    pub fn give_to(&self, uid: u32) {
        std::os::unix::fs::chown(&self.path, Some(uid), Some(uid))
            .expect("this test gives files away: run it as root");
    }

    /// Writes a script that can be executed.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path.join(name);
        std::fs::write(&path, text).expect("a scratch directory can be written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
            .expect("our own file");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::env::var_os("MAINSTAY_KEEP").is_none() {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// # Panics
/// When a tool that the test stands on is not there.
pub fn needs(tool: &str) {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(tool).is_file()));
    assert!(found, "this test needs '{tool}' in PATH: install it");
}

/// Namespaces, mounts, other users.
///
/// # Panics
/// When it is not there.
pub fn needs_root() {
    assert!(rustix::process::geteuid().is_root(), "this test needs root");
}

/// Waits for a time in which a process does next to nothing: one that spins never has it.
pub fn until_it_rests(pid: u32) {
    const WINDOW: std::time::Duration = std::time::Duration::from_millis(300);
    until("the process rests", || {
        let (before, start) = (proc::ticks(pid), std::time::Instant::now());
        std::thread::sleep(WINDOW);
        // A tick is 10 ms; on a busy machine the window may be longer than asked for.
        let share = u128::from(proc::ticks(pid) - before) * 10 * 100 / start.elapsed().as_millis();
        (share <= 10).then_some(())
    });
}

/// Whether a process is there and not a zombie.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => {
            !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X']))
        }
        Err(_) => false,
    }
}

/// Sends a signal to a process that the test has started, directly or through a node.
pub fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).expect("a pid");
    let _ = rustix::process::kill_process(pid, signal);
}
