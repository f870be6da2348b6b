//! What a client of Harpoon's makes of a directory in which a process is held: its `control` socket
//! and its `state` file.
//!
//! | connect | and | then |
//! |---|---|---|
//! | succeeds | | live: the stream is the truth |
//! | no such file | whoever starts it is there, or not known | not started yet |
//! | no such file | whoever starts it is gone | failed to start |
//! | refused, or the stream has ended | `state` says DOWN | finished as it says |
//! | the same | `state` says UP | crashed: its holder was killed |
//! | the same | no state, or one that cannot be read | crashed, and nothing is known |

mod connection;
mod starter;

pub(crate) use connection::Connection;
pub(crate) use starter::Starter;

use crate::socket;
use mainstay_wire::state::{ContainerState, ContainerStatus};
use std::{
    fs, io,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

const SOCKET: &str = "control";
const STATE: &str = "state";
/// A socket may be bound a moment before it listens.
const REFUSALS: usize = 3;
const PAUSE: Duration = Duration::from_millis(50);
/// For a holder to let us in, and to take what we say.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct HeldDir {
    pub(crate) dir: PathBuf,
    pub(crate) starter: Option<Starter>,
}

/// What there is to see in the directory.
#[derive(Debug)]
pub(crate) enum Sight {
    Live(Connection),
    NotStarted,
    FailedToStart,
    Finished(ContainerState),
    /// With the last state, if there is one.
    Crashed(Option<ContainerState>),
}

/// What comes of a connect.
#[derive(Debug)]
enum Reached {
    Connected(Connection),
    Missing,
    Refused,
}

impl HeldDir {
    /// One look.
    pub(crate) fn look(&self) -> io::Result<Sight> {
        let mut refusals = 0;
        loop {
            match self.connect()? {
                Reached::Connected(connection) => return Ok(Sight::Live(connection)),
                // Asked first: what a starter left before it went is then there to be seen.
                Reached::Missing => match self.starter.as_ref().is_some_and(Starter::is_gone) {
                    true if matches!(self.connect()?, Reached::Missing) => {
                        return Ok(Sight::FailedToStart);
                    }
                    true => {}
                    false => return Ok(Sight::NotStarted),
                },
                Reached::Refused if refusals < REFUSALS => {
                    refusals += 1;
                    thread::sleep(PAUSE);
                }
                Reached::Refused => {
                    let state = self.state();
                    // Else it may be the state of one that is just beginning.
                    if matches!(self.connect()?, Reached::Refused) && self.state() == state {
                        return Ok(over(state));
                    }
                    refusals = 0;
                }
            }
        }
    }

    /// Follows it to its end: finished, crashed, or failed to start. `None`: the time is up.
    pub(crate) fn wait(&self, until: Option<Instant>) -> io::Result<Option<Sight>> {
        loop {
            match self.look()? {
                Sight::Live(connection) => {
                    let heard = connection.follow(until)?;
                    // Without it the next look tells what has become of it.
                    if let Some(state) = heard.end() {
                        return Ok(Some(Sight::Finished(state)));
                    }
                }
                Sight::NotStarted => thread::sleep(PAUSE),
                sight @ (Sight::FailedToStart | Sight::Finished(_) | Sight::Crashed(_)) => {
                    return Ok(Some(sight));
                }
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(None);
            }
        }
    }

    fn connect(&self) -> io::Result<Reached> {
        match socket::connect(&self.dir, SOCKET, PATIENCE) {
            Ok(stream) => Ok(Reached::Connected(Connection::new(stream))),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound => Ok(Reached::Missing),
                io::ErrorKind::ConnectionRefused => Ok(Reached::Refused),
                _ => Err(error),
            },
        }
    }

    /// The state file; one that cannot be read is as good as none.
    fn state(&self) -> Option<ContainerState> {
        serde_json::from_slice(&fs::read(self.dir.join(STATE)).ok()?).ok()
    }
}

/// Nobody serves it any more.
fn over(state: Option<ContainerState>) -> Sight {
    match state {
        Some(state) if state.status == ContainerStatus::Down => Sight::Finished(state),
        state => Sight::Crashed(state),
    }
}
