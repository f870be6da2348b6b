//! A fresh image: it goes on as the keeper with what it was handed, or becomes the old one again.

use super::{
    UpgradeRequester, VARIABLE, confirmation, environment,
    error::{HandoverError, TakeOverError, UpgradeRefusal},
    snapshot::Handover,
};
use crate::keeper::Keeper;
use mainstay_sys::{fd, heap, latency, memory::MappedFile, spawn};
use mainstay_wire::link::{KeeperResponse, Upgraded};
use std::{
    ffi::OsString,
    os::fd::{AsFd, AsRawFd, OwnedFd, RawFd},
};

/// Where a checking binary finds the snapshot.
const SNAPSHOT_FD: RawFd = 3;

/// In a fresh image: takes over what the environment says was handed to it.
pub(crate) fn take_over() -> Option<Result<Keeper, TakeOverError>> {
    let variable = std::env::var(VARIABLE).ok()?;
    heap::leave_out_of_children();
    latency::ask_for_short_slices();
    Some(try_take_over(&variable))
}

fn try_take_over(variable: &str) -> Result<Keeper, TakeOverError> {
    let (memfd, old, given_back) = parse(variable)?;
    let memfd = fd::take(memfd).map_err(|error| TakeOverError::Missing {
        what: "the state of the old keeper is not there",
        error,
    })?;
    let handover = match read_handover(&memfd) {
        Ok(handover) => handover,
        Err(error) if given_back.is_some() => {
            return Err(TakeOverError::HandedBack(error));
        }
        Err(error) => return Err(go_back(&memfd, old, &error.to_string())),
    };
    let from = handover.version.clone();
    let requester = handover.requester;
    // Up to here the old image could still go on: nothing that was handed over is touched.
    let fresh = match handover.prepare() {
        Ok(fresh) => fresh,
        Err(error) if given_back.is_some() => return Err(TakeOverError::GoOn(error)),
        Err(error) => return Err(go_back(&memfd, old, &error.to_string())),
    };
    let mut keeper = handover.restore(fresh).map_err(TakeOverError::Restore)?;
    match (given_back, requester) {
        (None, _) => keeper.say_upgraded(from, requester),
        (Some(why), Some(requester)) => {
            keeper.refuse_upgrade(requester, &UpgradeRefusal::GaveBack { why });
        }
        (Some(_), None) => {}
    }
    keeper.start_agent();
    keeper.recheck_all();
    Ok(keeper)
}

fn parse(variable: &str) -> Result<(RawFd, RawFd, Option<String>), TakeOverError> {
    let mut fields = variable.splitn(3, ',');
    let mut number = || fields.next().and_then(|field| field.parse().ok());
    match (number(), number()) {
        (Some(memfd), Some(old)) => Ok((memfd, old, fields.next().map(str::to_owned))),
        _ => Err(TakeOverError::Variable(VARIABLE)),
    }
}

/// In an image that cannot go on: executes the old one, which can still read the state, and finds
/// all its descriptors open. Returns only if that failed.
fn go_back(memfd: &OwnedFd, old: RawFd, why: &str) -> TakeOverError {
    let stuck = |but: String| TakeOverError::NoWayBack { why: why.to_owned(), but };
    let argv: Vec<OsString> = std::env::args_os().collect();
    let mut env = environment();
    env.push((VARIABLE.into(), format!("{},{old},{why}", memfd.as_raw_fd()).into()));
    fd::keep_number_on_exec(memfd.as_raw_fd(), true);
    let back = match fd::take(old) {
        Ok(back) => back,
        Err(error) => return stuck(format!("the old executable is not there: {error}")),
    };
    fd::keep_number_on_exec(old, true);
    let failed = spawn::become_descriptor(back.as_fd(), &argv, &env);
    stuck(format!("the old executable cannot be executed: {failed}"))
}

/// In a fresh image: gives what was handed to it back to the old one. Returns only if that failed.
pub(crate) fn give_back(why: &str) -> TakeOverError {
    let nothing = |error: String| TakeOverError::NoWayBack {
        why: why.to_owned(),
        but: format!("nothing was handed over: {error}"),
    };
    let variable = match std::env::var(VARIABLE) {
        Ok(variable) => variable,
        Err(error) => return nothing(error.to_string()),
    };
    let (memfd, old) = match parse(&variable) {
        Ok((memfd, old, _)) => (memfd, old),
        Err(error) => return nothing(error.to_string()),
    };
    match fd::take(memfd) {
        Ok(memfd) => go_back(&memfd, old, why),
        Err(error) => nothing(error.to_string()),
    }
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

fn read_handover(memfd: &OwnedFd) -> Result<Handover, HandoverError> {
    Handover::read(&MappedFile::new(memfd).map_err(HandoverError::Io)?)
}

/// The role `__check`: reads the snapshot of a running keeper, and says so.
#[expect(clippy::disallowed_macros, reason = "a process of its own, which keeps nothing")]
pub(crate) fn check() -> Result<(), TakeOverError> {
    let memfd = fd::take(SNAPSHOT_FD).map_err(|error| TakeOverError::Missing {
        what: "there is no snapshot to look at",
        error,
    })?;
    let handover = read_handover(&memfd).map_err(TakeOverError::Handover)?;
    println!("{}", confirmation(handover.run()));
    Ok(())
}

#[cfg(feature = "fuzz")]
pub(crate) fn fuzz_read(bytes: &[u8]) -> bool {
    Handover::read(bytes).map(|handover| drop(handover.descriptors())).is_ok()
}
