//! `mainstay held DIR`: asks and orders as a client of a control socket, without a node.

use crate::{
    args::{HeldAction, HeldArgs},
    dirs,
    failure::{FAILED, Failure, NOT_AS_DESIRED, USAGE},
    held::{Connection, HeldDir, Sight, Starter},
    term::{Page, print_json},
};
use mainstay_core::signal::Signal;
use mainstay_wire::state::{ContainerProcessState, ContainerState, ContainerStatus};
use serde_json::json;
use std::{io, time::Instant};

pub(crate) fn held(args: &HeldArgs) -> Result<i32, Failure> {
    let dir = dirs::made_absolute(&args.dir)?;
    if !dir.is_dir() {
        return Err(Failure::failed(format!("there is no directory {}", dir.display())));
    }
    let held = HeldDir { dir, starter: args.starter.map(Starter::of) };
    match args.action {
        HeldAction::Status => status(args, &held),
        HeldAction::Wait => wait(args, &held),
        HeldAction::Stop => order(args, &held, Connection::stop),
        HeldAction::Kill => order(args, &held, Connection::kill),
        HeldAction::Signal => signal(args, &held),
    }
}

fn status(args: &HeldArgs, held: &HeldDir) -> Result<i32, Failure> {
    let mut sight = look(held)?;
    let mut state = None;
    while let Sight::Live(connection) = &mut sight {
        state = connection.first().map_err(|error| lost(held, &error))?;
        match state {
            Some(_) => break,
            None => sight = look(held)?,
        }
    }
    tell(args, &sight, state.as_ref())?;
    Ok(match &sight {
        Sight::Live(_) => 0,
        Sight::Finished(state) if code(&state.container_process_state) == 0 => 0,
        Sight::Finished(_) | Sight::NotStarted | Sight::FailedToStart | Sight::Crashed(_) => {
            NOT_AS_DESIRED
        }
    })
}

/// Ends with the code of what was held, as its `hold` does.
fn wait(args: &HeldArgs, held: &HeldDir) -> Result<i32, Failure> {
    let sight = end(args, held)?;
    tell(args, &sight, None)?;
    Ok(match &sight {
        Sight::Finished(state) => code(&state.container_process_state),
        Sight::Live(_) | Sight::NotStarted | Sight::FailedToStart | Sight::Crashed(_) => FAILED,
    })
}

/// Says it, and waits until it is done.
fn order(
    args: &HeldArgs,
    held: &HeldDir,
    say: fn(&mut Connection) -> io::Result<()>,
) -> Result<i32, Failure> {
    let sight = match look(held)? {
        Sight::Live(mut connection) => {
            // One that ends just now has what was asked for.
            let said = say(&mut connection);
            if args.no_wait {
                said.map_err(|error| lost(held, &error))?;
                return Ok(0);
            }
            let heard = connection.follow(deadline(args)).map_err(|error| lost(held, &error))?;
            match heard.end() {
                Some(state) => Sight::Finished(state),
                None => end(args, held)?,
            }
        }
        sight => sight,
    };
    tell(args, &sight, None)?;
    Ok(match sight {
        Sight::Finished(_) => 0,
        Sight::Live(_) | Sight::NotStarted | Sight::FailedToStart | Sight::Crashed(_) => FAILED,
    })
}

fn signal(args: &HeldArgs, held: &HeldDir) -> Result<i32, Failure> {
    let Some(signal) = args.signal else {
        return Err(Failure::new(USAGE, "name a signal: mainstay held DIR signal SIGHUP"));
    };
    match look(held)? {
        Sight::Live(mut connection) => {
            connection.signal(signal).map_err(|error| lost(held, &error))?;
            Ok(0)
        }
        sight => {
            tell(args, &sight, None)?;
            Ok(FAILED)
        }
    }
}

fn look(held: &HeldDir) -> Result<Sight, Failure> {
    held.look().map_err(|error| lost(held, &error))
}

fn end(args: &HeldArgs, held: &HeldDir) -> Result<Sight, Failure> {
    let sight = held.wait(deadline(args)).map_err(|error| lost(held, &error))?;
    sight.ok_or_else(|| late(args))
}

fn deadline(args: &HeldArgs) -> Option<Instant> {
    (!args.timeout.is_zero()).then(|| Instant::now() + args.timeout)
}

fn late(args: &HeldArgs) -> Failure {
    Failure::failed(format!("it has not ended within {:?}", args.timeout))
}

fn lost(held: &HeldDir, error: &io::Error) -> Failure {
    Failure::of(format!("cannot follow what is held in {}", held.dir.display()), error)
}

/// 128 + n for signal n, as a shell has it.
fn code(process: &ContainerProcessState) -> i32 {
    match (process.exited, process.signal) {
        (true, _) => process.exit_status.unwrap_or(0),
        (false, Some(signal)) => 128 + signal,
        (false, None) if process.signaled || process.oomed => 137,
        (false, None) => FAILED,
    }
}

fn tell(args: &HeldArgs, sight: &Sight, live: Option<&ContainerState>) -> Result<(), Failure> {
    let (word, state) = match sight {
        Sight::Live(_) => ("live", live),
        Sight::NotStarted => ("notStarted", None),
        Sight::FailedToStart => ("failedToStart", None),
        Sight::Finished(state) => ("finished", Some(state)),
        Sight::Crashed(state) => ("crashed", state.as_ref()),
    };
    if args.json {
        return print_json(&json!({ "is": word, "state": state }));
    }
    let mut page = Page::new();
    page.line(match (sight, state) {
        (Sight::Live(_), Some(state)) => living(state),
        (Sight::Live(_), None) => "live".to_owned(),
        (Sight::NotStarted, _) => "not started yet".to_owned(),
        (Sight::FailedToStart, _) => "failed to start: whoever started it is gone".to_owned(),
        (Sight::Finished(state), _) => format!("finished: {}", ended(state)),
        (Sight::Crashed(Some(state)), _) => {
            let pid = state.pid.map(|pid| format!(" as process {pid}")).unwrap_or_default();
            format!("crashed: its holder was killed; it was last seen up{pid}")
        }
        (Sight::Crashed(None), _) => {
            "crashed: its holder was killed, and left no state that can be read".to_owned()
        }
    });
    if let Some(state) = state.filter(|state| !state.err.is_empty()) {
        page.line(&state.err);
    }
    page.show()
}

fn living(state: &ContainerState) -> String {
    let process = &state.container_process_state;
    match (state.status, process.up, state.pid) {
        (ContainerStatus::Up, true, Some(pid)) => format!("up: process {pid}"),
        (ContainerStatus::Up, true, None) => "up".to_owned(),
        (ContainerStatus::Up, false, _) => "starting or ending".to_owned(),
        (ContainerStatus::Down, ..) => format!("down, a restart may follow: {}", ended(state)),
    }
}

fn ended(state: &ContainerState) -> String {
    let process = &state.container_process_state;
    let signal = process.signal.and_then(Signal::from_number);
    match (process.exited, process.oomed, signal) {
        (true, ..) => format!("exited with {}", process.exit_status.unwrap_or(0)),
        (false, true, _) => "killed for want of memory".to_owned(),
        (false, false, Some(signal)) => format!("killed by {signal}"),
        (false, false, None) if process.signaled => "killed by a signal".to_owned(),
        (false, false, None) => "it never ran".to_owned(),
    }
}
