//! An upgrade from the request to the moment before exec. Nothing in it waits:
//!
//! ```text
//!  Opening ──► Checking ──► TryingRest ──► EndingAgent ──► Resting ──► exec
//!   beside      as a child,   the writer     the threads     the threads
//!   the loop    it reads a    can rest       go on           at rest
//!               snapshot
//! ```
//!
//! Each stage has its time; what takes longer is refused, and everything goes on as it was. The
//! agent is ended only by who knows that the writer does not hang, and the threads go on meanwhile:
//! no output waits for the end of an agent.

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
    clock,
    reap::{self, ExitStatus},
    signal,
    spawn::{self, Cloned, Descriptors, Failure, Program, Step},
};
use std::{
    ffi::OsString,
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    time::Duration,
};

/// The time that opening the new binary may take, and that it has to look.
const CHECK_TIME: Duration = Duration::from_secs(10);
/// The time that threads and agent have to come to rest.
const REST_TIME: Duration = Duration::from_secs(3);
/// The forwarder is stuck in its reader after that: an exec ends it as it is.
const FORWARDER_TIME: Duration = Duration::from_millis(200);

/// An upgrade that is under way.
#[derive(Debug)]
pub(crate) struct Upgrade {
    requester: UpgradeRequester,
    path: PathBuf,
    /// When its stage began (CLOCK_BOOTTIME, ns).
    since: u64,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Opening,
    Checking(BinaryCheck),
    /// It can take over.
    Imminent {
        binary: OwnedFd,
        step: LastStep,
    },
}

/// What is to be done before a binary can take over, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastStep {
    /// The writer shows that it does not hang: if it does, the agent has to stay.
    TryingRest,
    EndingAgent,
    /// All that runs beside the main thread comes to rest, for good.
    Resting,
}

/// A new binary that is being looked at.
#[derive(Debug)]
struct BinaryCheck {
    binary: OwnedFd,
    /// Says why it could not be executed, if it could not.
    failure: OwnedFd,
    output: CapturedOutput,
}

/// What became of opening a binary, and for which upgrade that was.
#[derive(Debug)]
pub(crate) struct OpenedBinary {
    since: u64,
    opened: io::Result<OwnedFd>,
}

impl Upgrade {
    /// Who waits at `keeper.sock` for how it goes.
    pub(crate) fn waiting_client(&self) -> Option<u64> {
        match self.requester {
            UpgradeRequester::KeeperClient(id) => Some(id),
            UpgradeRequester::Agent(_) => None,
        }
    }

    /// The next binary takes over as soon as everything rests.
    pub(crate) fn is_imminent(&self) -> bool {
        matches!(self.stage, Stage::Imminent { .. })
    }

    fn spent(&self) -> Duration {
        Duration::from_nanos(clock::boottime().saturating_sub(self.since))
    }

    fn enter(&mut self, stage: Stage) {
        (self.stage, self.since) = (stage, clock::boottime());
    }
}

impl Keeper {
    pub(crate) fn begin_upgrade(&mut self, binary: Option<PathBuf>, requester: UpgradeRequester) {
        let Keeper { role: Role::Node(node), deadlines, context, .. } = self else { return };
        let refusal = if node.upgrade.is_some() {
            Some(UpgradeRefusal::UnderWay)
        } else if node.ending.is_some() || node.stopping_alone {
            Some(UpgradeRefusal::NodeStopping)
        } else if node.starter.is_some() {
            Some(UpgradeRefusal::NodeStarting)
        } else if context.disk.is_busy() {
            Some(UpgradeRefusal::RunDirHangs { dir: node.resources.dir.path().to_owned() })
        } else {
            None
        };
        if let Some(refusal) = refusal {
            return self.refuse_upgrade(requester, &refusal);
        }
        let path = match binary.map_or_else(own_path, Ok) {
            Ok(path) => path,
            Err(error) => return self.refuse_upgrade(requester, &UpgradeRefusal::NoOwnPath(error)),
        };
        let since = clock::boottime();
        let opened = path.clone();
        node.resources.opener.ask(move || OpenedBinary { since, opened: open(&opened) });
        node.upgrade = Some(Upgrade { requester, path, since, stage: Stage::Opening });
        deadlines.after(CHECK_TIME, Deadline::Upgrade);
    }

    /// The opener has an answer.
    pub(crate) fn binary_opened(&mut self) {
        let Some(node) = self.node() else { return };
        for answer in node.resources.opener.answers() {
            let Some(upgrade) = self.node().and_then(|node| node.upgrade.as_ref()) else { return };
            if upgrade.since != answer.since || !matches!(upgrade.stage, Stage::Opening) {
                continue;
            }
            let path = upgrade.path.clone();
            let checked = match answer.opened {
                Ok(binary) => self.check_binary(binary),
                Err(error) => Err(UpgradeRefusal::Binary { path, error }),
            };
            if let Err(refusal) = checked {
                self.give_up_upgrade(&refusal);
            }
        }
    }

    /// Starts the new binary as a child that looks at a snapshot.
    fn check_binary(&mut self, binary: OwnedFd) -> Result<(), UpgradeRefusal> {
        let snapshot = self.describe();
        let Keeper { role: Role::Node(node), context, poller, children, deadlines, .. } = self
        else {
            return Ok(());
        };
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
        if let Some(upgrade) = &mut node.upgrade {
            let output = CapturedOutput::from(pipe);
            upgrade.enter(Stage::Checking(BinaryCheck { binary, failure, output }));
        }
        Ok(())
    }

    pub(crate) fn check_ready(&mut self) {
        let Keeper { role: Role::Node(node), poller, .. } = self else { return };
        let stage = node.upgrade.as_mut().map(|upgrade| &mut upgrade.stage);
        let Some(Stage::Checking(check)) = stage else { return };
        if !check.output.read()
            && let Some(pipe) = check.output.pipe.take()
        {
            poller.remove(&pipe);
        }
    }

    pub(crate) fn check_late(&mut self, pid: u32) {
        if self.children.get(&pid) == Some(&Child::Check) {
            let _ = signal::send_group(pid, tree::KILL);
        }
    }

    pub(crate) fn check_died(&mut self, pid: u32) {
        let how = reap::reap(pid).map_or(ExitStatus::Code(1), |death| death.how);
        let Keeper { role: Role::Node(node), poller, deadlines, context, .. } = self else {
            return;
        };
        let Some(upgrade) = &mut node.upgrade else { return };
        let Stage::Checking(check) = &mut upgrade.stage else { return };
        check.output.read_rest();
        if let Some(pipe) = check.output.pipe.take() {
            poller.remove(&pipe);
        }
        let said = check.output.to_text().0.trim().to_owned();
        let mut bytes = [0; 16];
        let count = rustix::io::read(&check.failure, &mut bytes).unwrap_or(0);
        if let Some(failed) = Failure::from_bytes(&bytes[..count]) {
            if failed.step != Step::Exec {
                let error = io::Error::from_raw_os_error(failed.errno);
                return self.give_up_upgrade(&UpgradeRefusal::Check(error));
            }
            let why = ExecContext::of_file(&upgrade.path).describe(failed);
            return self.give_up_upgrade(&UpgradeRefusal::NoProgram { why });
        }
        // Many programs end well whatever they are asked.
        if how != ExitStatus::Code(0) || !said.ends_with(&confirmation(&context.run)) {
            let how = match how {
                ExitStatus::Code(0) => "it is no mainstay".to_owned(),
                ExitStatus::Code(code) => format!("code {code}"),
                ExitStatus::Signal(number) => format!("signal {number}"),
            };
            return self.give_up_upgrade(&UpgradeRefusal::CheckFailed { how, said });
        }
        match check.binary.try_clone() {
            Ok(binary) => upgrade.enter(Stage::Imminent { binary, step: LastStep::TryingRest }),
            Err(error) => return self.give_up_upgrade(&UpgradeRefusal::Check(error)),
        }
        node.resources.output.want_rest();
        deadlines.after(REST_TIME, Deadline::Upgrade);
    }

    /// Becomes the new binary as soon as the agent has ended and all that runs beside the main
    /// thread is at rest.
    pub(crate) fn try_upgrade(&mut self) {
        let Keeper { role: Role::Node(node), deadlines, .. } = self else { return };
        let Some(upgrade) = &mut node.upgrade else { return };
        let spent = upgrade.spent();
        let Stage::Imminent { step, .. } = &mut upgrade.stage else { return };
        if node.ending.is_some() || node.stopping_alone {
            return self.give_up_upgrade(&UpgradeRefusal::NodeStopping);
        }
        if self.context.disk.is_busy() {
            let dir = node.resources.dir.path().to_owned();
            return self.give_up_upgrade(&UpgradeRefusal::RunDirHangs { dir });
        }
        let output = &node.resources.output;
        match step {
            LastStep::TryingRest if output.is_writer_at_rest() => {
                *step = LastStep::EndingAgent;
                output.go_on();
                self.kill_agent();
                // There may be none.
                self.try_upgrade();
            }
            LastStep::EndingAgent if node.agent.is_none() => {
                (*step, upgrade.since) = (LastStep::Resting, clock::boottime());
                output.want_rest();
                deadlines.after(FORWARDER_TIME, Deadline::Upgrade);
                deadlines.after(REST_TIME, Deadline::Upgrade);
            }
            LastStep::Resting if output.is_writer_at_rest() => {
                if output.is_forwarder_at_rest() || spent >= FORWARDER_TIME {
                    self.become_checked_binary();
                }
            }
            LastStep::TryingRest | LastStep::EndingAgent | LastStep::Resting => {}
        }
    }

    fn become_checked_binary(&mut self) {
        self.look_for_pending_dead();
        let Role::Node(node) = &self.role else { return };
        let Some(upgrade) = &node.upgrade else { return };
        let Stage::Imminent { binary, .. } = &upgrade.stage else { return };
        let error = self.become_binary(binary, upgrade.requester);
        self.give_up_upgrade(&UpgradeRefusal::Exec(error));
    }

    /// A stage may have taken too long.
    pub(crate) fn upgrade_late(&mut self) {
        let Some(node) = self.node() else { return };
        let Some(upgrade) = &node.upgrade else { return };
        let refusal = match &upgrade.stage {
            Stage::Opening if upgrade.spent() >= CHECK_TIME => {
                let error = io::ErrorKind::TimedOut.into();
                UpgradeRefusal::Binary { path: upgrade.path.clone(), error }
            }
            Stage::Imminent { step, .. } if upgrade.spent() >= REST_TIME => match step {
                LastStep::EndingAgent => UpgradeRefusal::AgentHangs,
                LastStep::TryingRest | LastStep::Resting => {
                    UpgradeRefusal::LogsHang { dir: node.state_dir.clone() }
                }
            },
            Stage::Opening | Stage::Checking(_) | Stage::Imminent { .. } => return,
        };
        self.give_up_upgrade(&refusal);
    }

    /// Stays what it is, and goes on.
    fn give_up_upgrade(&mut self, refusal: &UpgradeRefusal) {
        let Some(node) = self.node() else { return };
        let Some(upgrade) = node.upgrade.take() else { return };
        if upgrade.is_imminent() {
            node.resources.output.go_on();
        }
        self.refuse_upgrade(upgrade.requester, refusal);
        self.start_agent();
    }
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK)?;
    crate::open_executable(path)
}

/// Where the binary that runs now lies, or lay before another took its place.
fn own_path() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let text = path.to_str().map(|text| text.trim_end_matches(" (deleted)"));
    Ok(text.map_or(path.clone(), PathBuf::from))
}
