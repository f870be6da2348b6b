//! Upgrade: the keeper becomes a new binary and keeps everything it holds.
//!
//! ```text
//!  ask ─► the new binary looks at a snapshot, as a child (`__check`) ── cannot read it ─► refused
//!            └─ can ─► agent ended, threads stopped, all state into a memfd, exec in place
//!                          └─ the new image restores it ── cannot ─► it executes the old one again
//! ```
//!
//! Same pid, same children; descriptors stay open over the exec under their numbers.

mod snapshot;

use crate::{
    event_loop::{
        deadline::Deadline,
        poller::{Interest, Source},
    },
    keeper::{Child, Keeper, Role},
    process::{launch, task::CapturedOutput, tree},
};
use mainstay_sys::{
    fd,
    reap::{self, ExitStatus},
    signal,
    spawn::{self, Descriptors, Program},
};
use mainstay_wire::link::{KeeperResponse, ToAgent, Upgraded};
use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};
use snapshot::Handover;
use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    os::fd::{AsFd, AsRawFd, OwnedFd, RawFd},
    path::{Path, PathBuf},
    time::Duration,
};

/// `MEMFD,OLD` with the numbers of the state and of the old executable; when the new image has given
/// it back, a third field says why.
pub(crate) const VARIABLE: &str = "MAINSTAY_HANDOVER";
const CHECK_TIME: Duration = Duration::from_secs(10);
/// Where a checking binary finds the snapshot.
const SNAPSHOT_FD: RawFd = 3;

/// Who wants an upgrade and hears how it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum UpgradeRequester {
    #[serde(rename = "Asker")]
    KeeperClient(u64),
    Agent(u64),
}

/// A new binary that is being looked at.
#[derive(Debug)]
pub(crate) struct BinaryCheck {
    requester: UpgradeRequester,
    binary: OwnedFd,
    pid: u32,
    output: CapturedOutput,
    passed: bool,
}

impl BinaryCheck {
    /// Who waits at `keeper.sock` for how it goes.
    pub(crate) fn waiting_client(&self) -> Option<u64> {
        match self.requester {
            UpgradeRequester::KeeperClient(id) => Some(id),
            UpgradeRequester::Agent(_) => None,
        }
    }
}

impl Keeper {
    pub(crate) fn begin_upgrade(&mut self, binary: Option<PathBuf>, requester: UpgradeRequester) {
        if let Err(error) = self.try_begin_upgrade(binary, requester) {
            self.refuse_upgrade(requester, error);
        }
    }

    fn try_begin_upgrade(
        &mut self,
        binary: Option<PathBuf>,
        requester: UpgradeRequester,
    ) -> Result<(), String> {
        let snapshot = self.describe();
        let Keeper { role: Role::Node(node), context, poller, children, deadlines, .. } = self
        else {
            return Ok(());
        };
        if node.check.is_some() {
            return Err("another upgrade is under way".to_owned());
        }
        if node.ending.is_some() || node.stopping_alone {
            return Err("the node is stopping".to_owned());
        }
        let path = match binary {
            Some(path) => path,
            None => own_path().map_err(|error| {
                format!("cannot find the binary that runs now: {error}; name one")
            })?,
        };
        let open = |path: &Path| -> io::Result<OwnedFd> {
            rustix::fs::access(path, rustix::fs::Access::EXEC_OK)?;
            crate::open_executable(path)
        };
        let binary = open(&path)
            .map_err(|error| format!("cannot use {} as the new binary: {error}", path.display()))?;
        let begun = || -> io::Result<(u32, OwnedFd)> {
            let memfd = write_memfd(&snapshot)?;
            let (read, write) = launch::pipe()?;
            let argv = [
                "mainstay",
                "__check",
                "--run-dir",
                &node.resources.dir.path().display().to_string(),
            ];
            let mut program = Program::new(&argv.map(str::to_owned), &context.env)?;
            program.run_descriptor(binary.as_raw_fd());
            program.ignored.clone_from(&context.ignored);
            let stdio = Some([context.null.as_fd(), write.as_fd(), write.as_fd()]);
            let cloned = spawn::spawn(
                &program,
                &Descriptors { stdio, extra: vec![memfd.as_fd()], placed: None },
                None,
            )?;
            Ok((cloned.pid, read))
        };
        let (pid, pipe) =
            begun().map_err(|error| format!("cannot look at the new binary: {error}"))?;
        let _ = poller.add(&pipe, Source::Check, 0, Interest::Read);
        children.insert(pid, Child::Check);
        deadlines.after(CHECK_TIME, Deadline::Check { pid });
        node.check = Some(BinaryCheck {
            requester,
            binary,
            pid,
            output: CapturedOutput::from(pipe),
            passed: false,
        });
        Ok(())
    }

    pub(crate) fn check_ready(&mut self) {
        let Keeper { role: Role::Node(node), poller, .. } = self else { return };
        let Some(check) = &mut node.check else { return };
        if !check.output.read()
            && let Some(pipe) = check.output.pipe.take()
        {
            poller.remove(&pipe);
        }
    }

    pub(crate) fn check_late(&mut self, pid: u32) {
        let check = self.node().and_then(|node| node.check.as_ref());
        if let Some(check) = check.filter(|check| check.pid == pid) {
            let _ = signal::send_group(check.pid, tree::KILL);
        }
    }

    pub(crate) fn check_died(&mut self, pid: u32) {
        let how = reap::reap(pid).map_or(ExitStatus::Code(1), |death| death.how);
        let Keeper { role: Role::Node(node), poller, .. } = self else { return };
        let Some(check) = &mut node.check else { return };
        check.output.read_rest();
        if let Some(pipe) = check.output.pipe.take() {
            poller.remove(&pipe);
        }
        let output = check.output.to_text().trim().to_owned();
        // Many programs end well whatever they are asked.
        if how == ExitStatus::Code(0) && output.ends_with(&confirmation(&self.context.run)) {
            check.passed = true;
            return;
        }
        let requester = check.requester;
        node.check = None;
        let how = match how {
            ExitStatus::Code(0) => "it is no mainstay".to_owned(),
            ExitStatus::Code(code) => format!("code {code}"),
            ExitStatus::Signal(number) => format!("signal {number}"),
        };
        self.refuse_upgrade(
            requester,
            format!("the new binary cannot take over ({how}): {output}"),
        );
    }

    fn refuse_upgrade(&mut self, requester: UpgradeRequester, error: String) {
        self.log(format!("upgrade refused: {error}"));
        match requester {
            UpgradeRequester::KeeperClient(id) => {
                self.answer(id, &KeeperResponse::Refused { error })
            }
            UpgradeRequester::Agent(id) => self.send(&ToAgent::UpgradeFailed { id, error }),
        }
    }

    pub(crate) fn upgrade_is_due(&self) -> bool {
        matches!(&self.role, Role::Node(node) if node.check.as_ref().is_some_and(|check| check.passed))
    }

    /// Becomes the new binary. Returns only if that failed, with everything as it was.
    pub(crate) fn reexec(mut self) -> io::Result<Keeper> {
        self.kill_agent();
        let Some(check) = self.node().and_then(|node| node.check.take()) else { return Ok(self) };
        let requester = check.requester;
        if self.node().is_some_and(|node| node.ending.is_some() || node.stopping_alone) {
            self.refuse_upgrade(requester, "the node is stopping".to_owned());
            return Ok(self);
        }
        let handover = self.into_handover(requester);
        let error = match write_memfd(&handover) {
            Err(error) => error,
            Ok(memfd) => become_binary(&handover, &memfd, &check.binary),
        };
        let fresh = handover.prepare()?;
        let mut keeper = handover.restore(fresh)?;
        keeper.refuse_upgrade(requester, format!("cannot execute the new binary: {error}"));
        keeper.start_agent();
        Ok(keeper)
    }
}

/// Where the binary that runs now lies, or lay before another took its place.
fn own_path() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let text = path.to_str().map(|text| text.trim_end_matches(" (deleted)"));
    Ok(text.map_or(path.clone(), PathBuf::from))
}

fn write_memfd(handover: &Handover) -> io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("mainstay-handover", MemfdFlags::CLOEXEC)?);
    file.write_all(&serde_json::to_vec(handover)?)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file.into())
}

fn become_binary(handover: &Handover, memfd: &OwnedFd, binary: &OwnedFd) -> io::Error {
    let kept = || handover.descriptors().into_iter().chain([memfd.as_raw_fd()]);
    for number in kept() {
        fd::keep_number_on_exec(number, true);
    }
    let argv: Vec<String> = std::env::args().collect();
    let mut env = environment();
    env.push((VARIABLE.to_owned(), format!("{},{}", memfd.as_raw_fd(), handover.exe)));
    let error = spawn::become_descriptor(binary.as_fd(), &argv, &env);
    for number in kept() {
        fd::keep_number_on_exec(number, false);
    }
    error
}

/// In a fresh image: takes over what the environment says was handed to it.
pub(crate) fn take_over() -> Option<Result<Keeper, String>> {
    let variable = std::env::var(VARIABLE).ok()?;
    Some(try_take_over(&variable))
}

fn try_take_over(variable: &str) -> Result<Keeper, String> {
    let (memfd, old, given_back) = parse(variable)?;
    let memfd = fd::take(memfd)
        .map_err(|error| format!("the state of the old keeper is not there: {error}"))?;
    let handover = match read_handover(&memfd) {
        Ok(handover) => handover,
        Err(error) if given_back.is_some() => {
            return Err(format!("cannot read what was handed back: {error}"));
        }
        Err(error) => return Err(go_back(&memfd, old, &error)),
    };
    let from = handover.version.clone();
    let requester = handover.requester;
    // Up to here the old image could still go on: nothing that was handed over is touched.
    let fresh = match handover.prepare() {
        Ok(fresh) => fresh,
        Err(error) if given_back.is_some() => return Err(format!("cannot go on: {error}")),
        Err(error) => return Err(go_back(&memfd, old, &error.to_string())),
    };
    let mut keeper =
        handover.restore(fresh).map_err(|error| format!("cannot take over: {error}"))?;
    match (given_back, requester) {
        (None, _) => keeper.say_upgraded(from, requester),
        (Some(why), Some(requester)) => {
            let error = format!("the new binary could not take over and gave back: {why}");
            keeper.refuse_upgrade(requester, error);
        }
        (Some(_), None) => {}
    }
    keeper.start_agent();
    keeper.recheck_all();
    Ok(keeper)
}

fn parse(variable: &str) -> Result<(RawFd, RawFd, Option<String>), String> {
    let mut fields = variable.splitn(3, ',');
    let mut number = || fields.next().and_then(|field| field.parse().ok());
    match (number(), number()) {
        (Some(memfd), Some(old)) => Ok((memfd, old, fields.next().map(str::to_owned))),
        _ => Err(format!("{VARIABLE} is not what a keeper writes")),
    }
}

/// In an image that cannot go on: executes the old one, which can still read the state, and finds
/// all its descriptors open. Returns only if that failed.
fn go_back(memfd: &OwnedFd, old: RawFd, why: &str) -> String {
    let argv: Vec<String> = std::env::args().collect();
    let mut env = environment();
    env.push((VARIABLE.to_owned(), format!("{},{old},{why}", memfd.as_raw_fd())));
    fd::keep_number_on_exec(memfd.as_raw_fd(), true);
    let back = match fd::take(old) {
        Ok(back) => back,
        Err(error) => return format!("{why}; and the old executable is not there: {error}"),
    };
    fd::keep_number_on_exec(old, true);
    let failed = spawn::become_descriptor(back.as_fd(), &argv, &env);
    format!("{why}; and the old executable cannot be executed: {failed}")
}

/// In a fresh image: gives what was handed to it back to the old one. Returns only if that failed.
pub(crate) fn give_back(why: &str) -> String {
    let handed = std::env::var(VARIABLE).map_err(|error| error.to_string());
    let taken = handed.and_then(|variable| {
        let (memfd, old, _) = parse(&variable)?;
        Ok((fd::take(memfd).map_err(|error| error.to_string())?, old))
    });
    match taken {
        Ok((memfd, old)) => go_back(&memfd, old, why),
        Err(error) => format!("{why}; and nothing was handed over: {error}"),
    }
}

/// Ours, without what one image tells the next.
fn environment() -> Vec<(String, String)> {
    let text = |text: OsString| text.to_string_lossy().into_owned();
    std::env::vars_os()
        .map(|(name, value)| (text(name), text(value)))
        .filter(|(name, _)| name != VARIABLE)
        .collect()
}

impl Keeper {
    fn say_upgraded(&mut self, from: String, requester: Option<UpgradeRequester>) {
        let to = crate::VERSION.to_owned();
        self.log(format!("upgraded from {from} to {to}"));
        if let Some(node) = self.node() {
            node.upgrades += 1;
            node.upgraded.push(Upgraded { number: node.upgrades, from, to: to.clone() });
        }
        if let Some(UpgradeRequester::KeeperClient(id)) = requester {
            self.answer(id, &KeeperResponse::Done { version: to });
        }
    }
}

fn read_handover(memfd: &OwnedFd) -> Result<Handover, String> {
    let mut file = File::from(memfd.try_clone().map_err(|error| error.to_string())?);
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))
        .and_then(|_| file.read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    Handover::read(&bytes)
}

/// What a binary says when it could take over: it names the run, which it has from the snapshot.
fn confirmation(run: &str) -> String {
    format!("can take over run {run}")
}

/// The role `__check`: reads the snapshot of a running keeper, and says so.
pub(crate) fn check() -> Result<(), String> {
    let memfd = fd::take(SNAPSHOT_FD)
        .map_err(|error| format!("there is no snapshot to look at: {error}"))?;
    println!("{}", confirmation(read_handover(&memfd)?.run()));
    Ok(())
}

#[cfg(feature = "fuzz")]
pub(crate) fn fuzz_read(bytes: &[u8]) -> Result<(), String> {
    Handover::read(bytes).map(|handover| drop(handover.descriptors()))
}
