//! `mainstay hold` in a directory.

use mainstay_tests::{Command, Control, Scratch, Watched, binary, signal, until};
use rustix::process::Signal;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
};

#[derive(Debug)]
pub(super) struct Held {
    scratch: Scratch,
    dir: PathBuf,
    stop_timeout: &'static str,
    child: Option<Child>,
}

impl Held {
    /// Holds a shell script in a fresh directory.
    pub(super) fn script(script: &str) -> Held {
        let mut held = Held::nothing();
        held.hold(script);
        held
    }

    /// A directory in which nothing is held yet.
    pub(super) fn nothing() -> Held {
        Held::nothing_in("")
    }

    /// The same, with more between the scratch directory and the file names.
    pub(super) fn nothing_in(below: &str) -> Held {
        let scratch = Scratch::new();
        let dir = scratch.path().join("held").join(below);
        fs::create_dir_all(&dir).expect("a scratch directory");
        Held { scratch, dir, stop_timeout: "300ms", child: None }
    }

    /// Gives what is held all the time it wants after a stop.
    pub(super) fn patiently(mut self) -> Held {
        self.stop_timeout = "1h";
        self
    }

    pub(super) fn hold(&mut self, script: &str) {
        self.hold_under(&[], script);
    }

    /// With a command before it that executes what follows.
    pub(super) fn hold_under(&mut self, before: &[&str], script: &str) {
        let binary = binary().display().to_string();
        let mut words = before.to_vec();
        words.extend([binary.as_str(), "hold", "--dir", self.path().to_str().expect("text")]);
        words.extend(["--stop-timeout", self.stop_timeout, "--", "sh", "-c", script]);
        let _ = fs::remove_file(self.up());
        let child = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .env("UP", self.up())
            .current_dir(self.scratch.path())
            .spawn()
            .expect("the binary can be started");
        self.child = Some(child);
    }

    /// A file that the script makes when it is up.
    fn up(&self) -> PathBuf {
        self.scratch.path().join("up")
    }

    /// A client, once the script is up.
    pub(super) fn connect(&self) -> Control {
        until("it is up", || self.up().exists().then_some(()));
        self.watched().connect()
    }

    /// A place for whatever a test wants to keep.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    pub(super) fn path(&self) -> &Path {
        &self.dir
    }

    pub(super) fn watched(&self) -> Watched {
        Watched::new(self.path())
    }

    /// As processes in the namespaces of the held one see it.
    pub(super) fn watched_inside(&self) -> Watched {
        until("it is up", || self.up().exists().then_some(()));
        let root = PathBuf::from(format!("/proc/{}/root", self.pid()));
        let path = self.path().strip_prefix("/").expect("an absolute path");
        Watched::new(root.join(path))
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.as_ref().expect("it is held").id()
    }

    pub(super) fn kill(&mut self) {
        signal(self.pid(), Signal::KILL);
        self.wait();
    }

    pub(super) fn wait(&mut self) -> ExitStatus {
        let child = self.child.as_mut().expect("it is held");
        let status = until("it ends", || child.try_wait().expect("our own child"));
        self.child = None;
        status
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
