//! The two sides: a real supervisord and a node, each with the same file in a directory of its own.

use mainstay_tests::{Node, Scratch, Setup, needs, signal, until, until_it_rests};
use rustix::process::Signal;
use std::{
    fs::{self, File},
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

/// What every program does, and who is asked at which socket.
const PROGRAMS: &str = include_str!("programs.conf");

/// A server of XML-RPC, and where it is.
pub(super) struct Side {
    dir: PathBuf,
    server: Supervisor,
}

/// With what goes when it does.
enum Supervisor {
    Supervisord { child: Child, _scratch: Scratch },
    Mainstay { _node: Box<Node> },
}

/// How an answer of `supervisorctl` ended, and what it was.
pub(super) struct Told {
    pub(super) code: Option<i32>,
    pub(super) text: String,
}

impl Side {
    pub(super) fn supervisord() -> Side {
        needs("supervisord");
        let scratch = Scratch::new();
        let dir = scratch.path().to_owned();
        configure(&dir, "first");
        let output = File::create(dir.join("out")).expect("a scratch directory can be written");
        let child = Command::new("supervisord")
            .args(["-n", "-c"])
            .arg(dir.join("supervisord.conf"))
            .current_dir(&dir)
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a descriptor"))
            .stderr(output)
            .spawn()
            .expect("supervisord can be started");
        Side { dir, server: Supervisor::Supervisord { child, _scratch: scratch } }.up()
    }

    pub(super) fn mainstay() -> Side {
        let scratch = Scratch::new();
        let dir = scratch.path().to_owned();
        configure(&dir, "first");
        let file = dir.join("supervisord.conf");
        let node = Setup::import("supervisord", &file).launch_in(scratch);
        Side { dir, server: Supervisor::Mainstay { _node: Box::new(node) } }.up()
    }

    fn up(self) -> Side {
        self.until_it_answers();
        self
    }

    pub(super) fn until_it_answers(&self) {
        until("it answers", || (self.ctl("pid").code == Some(0)).then_some(()));
    }

    /// Where it is, which stands in what it says.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn server(&self) -> String {
        format!("unix://{}", self.dir.join("ctl.sock").display())
    }

    /// Another set of programs, which only a `reread` sees.
    pub(super) fn configure(&self, which: &str) {
        configure(&self.dir, which);
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("supervisorctl");
        command
            .arg("-c")
            .arg(self.dir.join("supervisord.conf"))
            .args(line.replace("SERVER", &self.server()).split_whitespace())
            .env("PYTHONUNBUFFERED", "1")
            .env("LC_ALL", "C.UTF-8")
            .current_dir(&self.dir)
            .stdin(Stdio::null());
        command
    }

    /// One command, to its end.
    pub(super) fn ctl(&self, line: &str) -> Told {
        told(self.command(line).output().expect("supervisorctl can be started"))
    }

    /// One that goes on until it has said something, and is interrupted then.
    pub(super) fn interrupted(&self, line: &str, until_said: &str) -> Told {
        let mut running = Running::start(self.command(line), None);
        running.until(until_said);
        // It waits for more.
        until_it_rests(running.child.id());
        signal(running.child.id(), Signal::INT);
        running.end()
    }

    /// One that is typed a line, and left once that has come back.
    pub(super) fn typed(&self, line: &str, typed: &str) -> Told {
        let mut command = self.command(line);
        command.stdin(Stdio::piped());
        let mut running = Running::start(command, Some(typed));
        running.until(typed);
        drop(running.child.stdin.take());
        running.end()
    }

    /// A call without supervisorctl, by a client that is not ours: its result as Python shows it.
    pub(super) fn call(&self, method: &str, params: &str) -> String {
        let output = Command::new("python3")
            .arg("-c")
            .arg(include_str!("call.py"))
            .arg(self.dir.join("ctl.sock"))
            .args([method, params])
            .output()
            .expect("python can be started");
        let told = told(output);
        assert_eq!(told.code, Some(0), "{method} {params}: {}", told.text);
        told.text.trim_end().to_owned()
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        if let Supervisor::Supervisord { child, .. } = &mut self.server {
            signal(child.id(), Signal::TERM);
            let _ = child.wait();
        }
    }
}

fn told(output: Output) -> Told {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Told { code: output.status.code(), text }
}

/// A command that has not ended.
struct Running {
    child: Child,
    said: String,
}

impl Running {
    fn start(mut command: Command, typed: Option<&str>) -> Running {
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("supervisorctl can be started");
        if let (Some(typed), Some(input)) = (typed, child.stdin.as_mut()) {
            writeln!(input, "{typed}").expect("it reads");
        }
        Running { child, said: String::new() }
    }

    fn until(&mut self, text: &str) {
        let output = self.child.stdout.as_mut().expect("a pipe");
        let mut bytes = [0; 4096];
        while !self.said.contains(text) {
            let count = output.read(&mut bytes).expect("readable");
            assert!(count > 0, "it ended before '{text}': {}", self.said);
            self.said.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    }

    fn end(mut self) -> Told {
        let mut rest = String::new();
        let output = self.child.stdout.as_mut().expect("a pipe");
        output.read_to_string(&mut rest).expect("readable");
        let code = self.child.wait().expect("it was started").code();
        Told { code, text: self.said + &rest }
    }
}

/// The programs, and after a line `# WHICH` those that are there only then.
fn configure(dir: &Path, which: &str) {
    let mut parts = PROGRAMS.split("\n# ");
    let mut text = parts.next().expect("the begin").to_owned();
    for part in parts {
        let (names, programs) = part.split_once('\n').expect("a line with names");
        if names.split_whitespace().any(|name| name == which) {
            text.push('\n');
            text.push_str(programs);
        }
    }
    let text = text.replace("DIR", &dir.display().to_string());
    fs::write(dir.join("supervisord.conf"), text).expect("a scratch directory can be written");
}
