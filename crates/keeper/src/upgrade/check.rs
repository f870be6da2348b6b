//! A new binary, looked at before the keeper becomes it: as a child, it reads a snapshot.

use super::{UpgradeRequester, confirmation, error::UpgradeRefusal, write_memfd};
use crate::{
    event_loop::{
        deadline::Deadline,
        poller::{Interest, Source},
    },
    keeper::{Child, Keeper, Role},
    process::{exec_error::ExecContext, launch, task::CapturedOutput, tree},
};
use mainstay_sys::{
    reap::{self, ExitStatus},
    signal,
    spawn::{self, Cloned, Descriptors, Failure, Program},
};
use std::{
    ffi::OsString,
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    time::Duration,
};

/// The time that a new binary has to look.
const CHECK_TIME: Duration = Duration::from_secs(10);

/// A new binary that is being looked at.
#[derive(Debug)]
pub(crate) struct BinaryCheck {
    pub(super) requester: UpgradeRequester,
    pub(super) binary: OwnedFd,
    path: PathBuf,
    pid: u32,
    /// Says why it could not be executed, if it could not.
    failure: OwnedFd,
    output: CapturedOutput,
    pub(super) passed: bool,
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
            self.refuse_upgrade(requester, &error);
        }
    }

    fn try_begin_upgrade(
        &mut self,
        binary: Option<PathBuf>,
        requester: UpgradeRequester,
    ) -> Result<(), UpgradeRefusal> {
        let snapshot = self.describe();
        let Keeper { role: Role::Node(node), context, poller, children, deadlines, .. } = self
        else {
            return Ok(());
        };
        if node.check.is_some() {
            return Err(UpgradeRefusal::UnderWay);
        }
        if node.ending.is_some() || node.stopping_alone {
            return Err(UpgradeRefusal::NodeStopping);
        }
        let path = match binary {
            Some(path) => path,
            None => own_path().map_err(UpgradeRefusal::NoOwnPath)?,
        };
        let open = |path: &Path| -> io::Result<OwnedFd> {
            rustix::fs::access(path, rustix::fs::Access::EXEC_OK)?;
            crate::open_executable(path)
        };
        let binary =
            open(&path).map_err(|error| UpgradeRefusal::Binary { path: path.clone(), error })?;
        let begun = || -> io::Result<(Cloned, OwnedFd)> {
            let memfd = write_memfd(&snapshot)?;
            let (read, write) = launch::pipe()?;
            let run_dir = node.resources.dir.path().as_os_str();
            let words = ["mainstay", "__check", "--run-dir"].map(OsString::from);
            let argv: Vec<OsString> = words.into_iter().chain([run_dir.to_owned()]).collect();
            let mut program = Program::new(&argv, &context.env)?;
            program.run_descriptor(binary.as_raw_fd());
            program.ignored.clone_from(&context.ignored);
            let stdio = Some([context.null.as_fd(), write.as_fd(), write.as_fd()]);
            let cloned = spawn::spawn(
                &program,
                &Descriptors { stdio, extra: vec![memfd.as_fd()], placed: None },
                None,
            )?;
            Ok((cloned, read))
        };
        let (Cloned { pid, failure, .. }, pipe) = begun().map_err(UpgradeRefusal::Check)?;
        let _ = poller.add(&pipe, Source::Check, 0, Interest::Read);
        children.insert(pid, Child::Check);
        deadlines.after(CHECK_TIME, Deadline::Check { pid });
        node.check = Some(BinaryCheck {
            requester,
            binary,
            path,
            pid,
            failure,
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
        let mut bytes = [0; 16];
        let count = rustix::io::read(&check.failure, &mut bytes).unwrap_or(0);
        if let Some(failed) = Failure::from_bytes(&bytes[..count]) {
            let why = ExecContext::of_file(&check.path).describe(failed);
            node.check = None;
            return self.refuse_upgrade(requester, &UpgradeRefusal::NoProgram { why });
        }
        node.check = None;
        let how = match how {
            ExitStatus::Code(0) => "it is no mainstay".to_owned(),
            ExitStatus::Code(code) => format!("code {code}"),
            ExitStatus::Signal(number) => format!("signal {number}"),
        };
        self.refuse_upgrade(requester, &UpgradeRefusal::CheckFailed { how, said: output });
    }
}

/// Where the binary that runs now lies, or lay before another took its place.
fn own_path() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let text = path.to_str().map(|text| text.trim_end_matches(" (deleted)"));
    Ok(text.map_or(path.clone(), PathBuf::from))
}
