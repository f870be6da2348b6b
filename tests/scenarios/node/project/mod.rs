//! Several projects of one user on one machine: each has a node of its own, that is found from where
//! one is, and none gets in the way of another.

mod former;
mod found;
mod logs;

use mainstay_tests::{Command, Scratch, binary, needs, needs_root, signal, until};
use rustix::process::Signal;
use serde_json::Value;
use std::{
    cell::RefCell,
    fs::{self, File},
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Child, Output, Stdio},
};

const NOBODY: u32 = 65534;

/// A user who is not root, with a home and directories of the session.
struct User {
    scratch: Scratch,
    nodes: RefCell<Vec<Child>>,
}

impl User {
    fn new() -> User {
        needs_root();
        needs("setpriv");
        let scratch = Scratch::new();
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).expect("our own");
        let user = User { scratch, nodes: RefCell::default() };
        for dir in ["home", "runtime"] {
            user.own_dir(dir);
        }
        user
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn own_dir(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).expect("a scratch directory");
        chown(&path, Some(NOBODY), Some(NOBODY)).expect("root may");
        path
    }

    /// A directory with a configuration.
    fn project(&self, name: &str, config: &str) -> PathBuf {
        let dir = self.own_dir(name);
        fs::write(dir.join("mainstay.toml"), config).expect("a scratch directory");
        dir
    }

    fn command(&self, cwd: &Path, args: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(binary())
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("XDG_RUNTIME_DIR", self.path("runtime"))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .current_dir(cwd);
        command
    }

    fn ask(&self, cwd: &Path, args: &[&str]) -> Output {
        self.command(cwd, args).output().expect("setpriv can be started")
    }

    /// Runs a command that must succeed; what it printed.
    fn must(&self, cwd: &Path, args: &[&str]) -> String {
        let output = self.ask(cwd, args);
        assert!(output.status.success(), "mainstay {args:?} in {}: {output:?}", cwd.display());
        text(&output.stdout)
    }

    fn json(&self, cwd: &Path, args: &[&str]) -> Value {
        serde_json::from_slice(&self.ask(cwd, args).stdout).unwrap_or_default()
    }

    /// Starts a node in a directory, and waits until it runs; its keeper, and the file that it
    /// writes its stderr to.
    fn start(&self, cwd: &Path, args: &[&str]) -> (u32, PathBuf) {
        let stderr = self.path(&format!("stderr-{}", self.nodes.borrow().len()));
        let child = self
            .command(cwd, &[&["run"], args].concat())
            .stdout(Stdio::null())
            .stderr(File::create(&stderr).expect("a scratch directory"))
            .spawn()
            .expect("setpriv can be started");
        let keeper = child.id();
        self.nodes.borrow_mut().push(child);
        until("the node runs", || {
            let mine = |node: &Value| node["pid"] == keeper && node["state"] == "running";
            self.json(cwd, &["ps", "--json"]).as_array()?.iter().any(mine).then_some(())
        });
        (keeper, stderr)
    }

    /// A job of the node that is found from a directory.
    fn job(&self, cwd: &Path, name: &str) -> Option<Value> {
        let status = self.json(cwd, &["status", "--json"]);
        status["jobs"].as_array()?.iter().find(|job| job["name"] == name).cloned()
    }

    fn wait(&self, keeper: u32) {
        let mut nodes = self.nodes.borrow_mut();
        let node = nodes.iter_mut().find(|node| node.id() == keeper).expect("it was started");
        until("the node ends", || node.try_wait().expect("our own child"));
    }
}

impl Drop for User {
    fn drop(&mut self) {
        for node in self.nodes.get_mut() {
            if node.try_wait().is_ok_and(|status| status.is_none()) {
                signal(node.id(), Signal::TERM);
                signal(node.id(), Signal::TERM);
                let _ = node.wait();
            }
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
