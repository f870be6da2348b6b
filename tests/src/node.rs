//! One node: a keeper in the foreground of its own directories, and what can be asked about it.

use crate::{Control, Events, Scratch, binary, is_alive, proc, signal, until, wait::within_ok};
use rustix::process::Signal;
use serde_json::Value;
use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Output, Stdio},
    time::Duration,
};

pub use std::process::Command;

/// What a node is started with.
#[derive(Debug, Default)]
pub struct Setup {
    config: Option<String>,
    directory: Option<PathBuf>,
    import: Option<(String, Vec<PathBuf>)>,
    command: Vec<OsString>,
    env: Vec<(String, OsString)>,
    before: Vec<String>,
    own_mounts: bool,
    args: Vec<String>,
}

impl Setup {
    /// A node with this configuration file.
    #[must_use]
    pub fn config(text: impl Into<String>) -> Setup {
        Setup { config: Some(text.into()), ..Setup::default() }
    }

    /// A node with this configuration, a file or directory that is not the test's own.
    #[must_use]
    pub fn example(path: impl Into<PathBuf>) -> Setup {
        Setup { directory: Some(path.into()), ..Setup::default() }
    }

    /// `mainstay run --from FORMAT FILE`
    #[must_use]
    pub fn import(format: &str, file: &Path) -> Setup {
        Setup::imports(format, &[file.to_owned()])
    }

    /// `mainstay run --from FORMAT FILE…`
    #[must_use]
    pub fn imports(format: &str, files: &[PathBuf]) -> Setup {
        let import = Some((format.to_owned(), files.to_vec()));
        Setup { import, ..Setup::default() }
    }

    /// `mainstay run -- COMMAND…`
    #[must_use]
    pub fn command<S: AsRef<OsStr>>(command: &[S]) -> Setup {
        let command = command.iter().map(|word| word.as_ref().to_owned()).collect();
        Setup { command, ..Setup::default() }
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Setup {
        self.env.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Trees without cgroups.
    #[must_use]
    pub fn without_cgroups(self) -> Setup {
        self.env("MAINSTAY_NO_CGROUP", "1")
    }

    /// A command that executes what follows it: `unshare …`, `setpriv …`. One that is given later
    /// comes before those given earlier.
    #[must_use]
    pub fn under(mut self, command: &[&str]) -> Setup {
        self.before.splice(0..0, command.iter().map(ToString::to_string));
        self
    }

    /// A line of shell that the process runs before it becomes what was asked for:
    /// `ulimit -n 64`, `exec >fifo`.
    #[must_use]
    pub fn after(self, script: &str) -> Setup {
        let script = format!("{script}\nexec \"$@\"");
        self.under(&["sh", "-e", "-c", &script, "sh"])
    }

    /// As [`Setup::after`], in a mount namespace of its own: what is mounted there concerns nobody
    /// else. [`Node::run_dir`] and [`Node::state_dir`] then lead into it.
    #[must_use]
    pub fn with_mounts(mut self, script: &str) -> Setup {
        let script = format!("{script}\nexec \"$@\"");
        let unshare = ["unshare", "--mount", "--propagation", "private"];
        self.own_mounts = true;
        self.under(&["sh", "-e", "-c", &script, "sh"]).under(&unshare)
    }

    /// Further arguments of `mainstay run`.
    #[must_use]
    pub fn args(mut self, args: &[&str]) -> Setup {
        self.args.extend(args.iter().map(ToString::to_string));
        self
    }

    /// Starts it and does not wait.
    #[must_use]
    pub fn launch(self) -> Node {
        self.launch_in(Scratch::new())
    }

    #[must_use]
    pub fn launch_in(self, scratch: Scratch) -> Node {
        let dir = scratch.path().to_owned();
        if let Some(text) = &self.config {
            fs::write(dir.join("mainstay.toml"), text).expect("a scratch directory can be written");
        }
        let mut node = Node { scratch, setup: self, child: None };
        node.launch_again();
        node
    }

    /// Starts it and waits until its agent answers.
    #[must_use]
    pub fn start(self) -> Node {
        let node = self.launch();
        node.wait_until_ready();
        node
    }
}

#[derive(Debug)]
pub struct Node {
    scratch: Scratch,
    setup: Setup,
    child: Option<Child>,
}

impl Node {
    /// Starts the keeper in the same directories, after it has ended.
    pub fn launch_again(&mut self) {
        let file = |name: &str| {
            File::options()
                .create(true)
                .append(true)
                .open(self.path().join(name))
                .expect("a scratch directory can be written")
        };
        let program = self
            .setup
            .before
            .iter()
            .cloned()
            .chain([binary().display().to_string(), "run".to_owned()]);
        let mut words = program.collect::<Vec<_>>().into_iter();
        let mut command = Command::new(words.next().expect("a program"));
        command
            .args(words)
            .env("MAINSTAY_RUN_DIR", self.path().join("run"))
            .env("MAINSTAY_STATE_DIR", self.path().join("state"))
            .envs(self.setup.env.iter().cloned())
            .args(&self.setup.args);
        if self.setup.config.is_some() {
            command.arg("-c").arg(self.path().join("mainstay.toml"));
        }
        if let Some((format, files)) = &self.setup.import {
            command.arg("--from").arg(format).args(files);
        }
        if let Some(path) = &self.setup.directory {
            command.arg("-c").arg(path);
        }
        if !self.setup.command.is_empty() {
            command.arg("--").args(&self.setup.command);
        }
        command
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .current_dir(self.path());
        self.child = Some(command.spawn().expect("the binary can be started"));
    }

    /// Writes another configuration, which only a reload makes count.
    pub fn configure(&self, text: &str) {
        let path = self.path().join("mainstay.toml");
        fs::write(path, text).expect("a scratch directory can be written");
    }

    pub fn wait_until_ready(&self) {
        until("the agent answers", || self.try_status());
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.scratch.path()
    }

    #[must_use]
    pub fn run_dir(&self) -> PathBuf {
        self.seen("run")
    }

    #[must_use]
    pub fn state_dir(&self) -> PathBuf {
        self.seen("state")
    }

    /// A file of this node's directory, as the node sees it.
    #[must_use]
    pub fn seen(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        match self.setup.own_mounts {
            true => {
                let root = PathBuf::from(format!("/proc/{}/root", self.child_pid()));
                root.join(path.strip_prefix("/").expect("an absolute path"))
            }
            false => path,
        }
    }

    /// A command that talks to this node.
    #[must_use]
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(args)
            .env("MAINSTAY_RUN_DIR", self.run_dir())
            .env("MAINSTAY_STATE_DIR", self.state_dir());
        command.env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    /// Runs a command that talks to this node.
    pub fn ask(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the binary can be started")
    }

    /// Runs a command that must succeed; what it printed.
    pub fn must(&self, args: &[&str]) -> String {
        let output = self.ask(args);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "mainstay {args:?}: {}\n{}{}\n{}",
            output.status,
            text(&output.stdout),
            text(&output.stderr),
            self.stderr()
        );
        text(&output.stdout)
    }

    fn try_status(&self) -> Option<Value> {
        let output = self.ask(&["status", "--json"]);
        serde_json::from_slice(&output.stdout).ok()
    }

    #[must_use]
    pub fn status(&self) -> Value {
        until("the agent answers", || self.try_status())
    }

    /// A job as `status --json` shows it.
    #[must_use]
    pub fn job(&self, name: &str) -> Value {
        let status = self.status();
        let jobs = status["jobs"].as_array().expect("a list of jobs");
        jobs.iter()
            .find(|job| job["name"] == name)
            .unwrap_or_else(|| panic!("there is no job {name}: {status}"))
            .clone()
    }

    /// Waits until a job is in a state; the job.
    pub fn until_state(&self, name: &str, state: &str) -> Value {
        until(&format!("{name} is {state}"), || {
            Some(self.job(name)).filter(|job| job["state"] == state)
        })
    }

    /// Waits until a job is as healthy as this; the job.
    pub fn until_health(&self, name: &str, health: &str) -> Value {
        until(&format!("{name} is {health}"), || {
            Some(self.job(name)).filter(|job| job["health"] == health)
        })
    }

    #[must_use]
    pub fn pid(&self, name: &str) -> Option<u32> {
        self.job(name)["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok())
    }

    /// The pid of a job that runs, or will soon.
    pub fn running(&self, name: &str) -> u32 {
        self.until_state(name, "RUNNING");
        until(&format!("{name} has a pid"), || self.pid(name))
    }

    /// Follows the events of this node from its first.
    #[must_use]
    pub fn events(&self) -> Events {
        Events::follow(self.command(&["events", "-f", "--json", "--since", "0"]))
    }

    /// The process that the test has started.
    fn child_pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// The keeper: the process that the test has started, or the only child of what it runs under.
    #[must_use]
    pub fn keeper(&self) -> u32 {
        until("there is a keeper", || self.try_keeper())
    }

    fn try_keeper(&self) -> Option<u32> {
        if self.setup.before.is_empty() {
            // Whatever binary it was upgraded to.
            return Some(self.child_pid());
        }
        let own = binary().canonicalize().expect("it was built");
        let mut pid = self.child_pid();
        while fs::read_link(format!("/proc/{pid}/exe")).ok()? != own {
            pid = *proc::children(pid).first()?;
        }
        Some(pid)
    }

    #[must_use]
    pub fn agent(&self) -> u32 {
        until("there is an agent", || self.try_agent())
    }

    /// The agent, if there is one at the moment.
    #[must_use]
    pub fn try_agent(&self) -> Option<u32> {
        proc::children(self.keeper()).into_iter().find(|pid| has_role(*pid, "__agent"))
    }

    /// The process that waits to become the next agent.
    #[must_use]
    pub fn is_spare(&self, pid: u32) -> bool {
        has_role(pid, "__spare")
    }

    /// Kills the agent and waits until another one answers.
    pub fn kill_agent(&self) {
        let before = self.status()["agent_restarts"].as_u64();
        signal(self.agent(), Signal::KILL);
        until("another agent answers", || {
            (self.try_status()?["agent_restarts"].as_u64() > before).then_some(())
        });
    }

    /// A client of a job's control socket.
    #[must_use]
    pub fn control(&self, job: &str) -> Control {
        let path = self.run_dir().join("jobs").join(job).join("control");
        until("the control socket answers", || Control::connect(&path).ok())
    }

    /// Waits for the end of the run.
    pub fn wait(&mut self) -> ExitStatus {
        let child = self.child.as_mut().expect("it was started");
        let status = until("the run ends", || child.try_wait().expect("our own child"));
        self.child = None;
        status
    }

    /// How the run has ended, if it has.
    pub fn try_wait(&mut self) -> Option<ExitStatus> {
        let child = self.child.as_mut().expect("it was started");
        let status = child.try_wait().expect("our own child");
        if status.is_some() {
            self.child = None;
        }
        status
    }

    /// The log files of a job, archives first.
    #[must_use]
    pub fn log_files(&self, job: &str) -> Vec<PathBuf> {
        let dir = self.state_dir().join("logs").join(job);
        let entries = fs::read_dir(&dir).into_iter().flatten();
        let mut files: Vec<PathBuf> =
            entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        // What is still being written is hidden.
        files.retain(|file| file.file_name().is_none_or(|it| it.as_encoded_bytes()[0] != b'.'));
        // Archives begin with a number, so `current` comes last.
        files.sort();
        files
    }

    /// The texts of a job's log, pieces joined, archives first.
    #[must_use]
    pub fn log(&self, job: &str) -> Vec<String> {
        let files = self.log_files(job);
        let mut lines = Vec::new();
        let mut line = String::new();
        for entry in files.iter().flat_map(|file| {
            let text =
                String::from_utf8_lossy(&fs::read(file).expect("a log can be read")).into_owned();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        }) {
            let mut fields = entry.splitn(4, ' ');
            let (kind, text) = (fields.nth(2), fields.next());
            line.push_str(text.unwrap_or_default());
            if kind == Some("F") {
                lines.push(std::mem::take(&mut line));
            }
        }
        lines
    }

    /// Waits until a job's log holds a line, and gives all of them.
    pub fn until_logged(&self, job: &str, line: &str) -> Vec<String> {
        until(&format!("{job} has written '{line}'"), || {
            Some(self.log(job)).filter(|lines| lines.iter().any(|one| one == line))
        })
    }

    /// Waits until our own log, as it is forwarded, says something.
    pub fn until_told(&self, text: &str) -> String {
        until(&format!("the node says '{text}'"), || {
            Some(self.stderr()).filter(|told| told.contains(text))
        })
    }

    #[must_use]
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.path().join("stdout")).unwrap_or_default())
            .into_owned()
    }

    /// Our own log, as the keeper forwards it.
    #[must_use]
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.path().join("stderr")).unwrap_or_default())
            .into_owned()
    }

    /// Nobody is left of this node's run. What the keeper does at a disk is done by a process that the
    /// kernel kills at its end: that may be seen for an instant.
    ///
    /// # Panics
    /// If somebody is; it says who.
    pub fn leaves_nothing(&self) {
        let named = |pid: &u32| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            format!("{pid} {}", String::from_utf8_lossy(&command).replace('\0', " "))
        };
        within_ok(Duration::from_secs(2), "nobody is left", || {
            let left: Vec<String> = self.processes().iter().map(named).collect();
            if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
        });
    }

    /// Every live process that carries the cookie of this node's run, and is not in a test's hands.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let mark = format!("MAINSTAY_RUN_DIR={}\0", self.path().join("run").display());
        let own = std::process::id();
        let all = fs::read_dir("/proc")
            .expect("there is /proc")
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        all.filter(|pid| *pid != own && is_alive(*pid))
            .filter(|pid| {
                let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environ.windows(mark.len()).any(|window| window == mark.as_bytes())
            })
            .collect()
    }
}

impl Drop for Node {
    /// Whatever the test left: the keeper, the agent, jobs and what they have started.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- stderr of the node\n{}---", self.stderr());
        }
        let keeper = self.child.is_some().then(|| self.try_keeper()).flatten();
        if let Some(mut child) = self.child.take() {
            signal(keeper.unwrap_or(child.id()), Signal::TERM);
            let end = std::time::Instant::now() + std::time::Duration::from_secs(2);
            while child.try_wait().is_ok_and(|status| status.is_none())
                && std::time::Instant::now() < end
            {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        for pid in self.processes() {
            signal(pid, Signal::KILL);
        }
    }
}

fn has_role(pid: u32, role: &str) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).any(|word| word == role.as_bytes())
}
