//! `mainstay shutdown`: through the agent, or without one if there is none.

use crate::{
    args::ShutdownArgs,
    client::{Client, PROMPT},
    failure::Failure,
    keeper,
    term::{print, print_json, tell},
};
use mainstay_wire::link::{KeeperRequest, KeeperResponse};
use serde_json::json;
use std::{
    fs::{File, TryLockError},
    path::Path,
    thread,
    time::{Duration, Instant},
};

const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub(crate) fn shutdown(args: &ShutdownArgs) -> Result<i32, Failure> {
    let client = Client::of(&args.node)?;
    if args.drain {
        let path = format!("/v1/shutdown?wait={}ms", args.timeout.as_millis());
        let answer = client.post(&path, &json!({ "drain": true }), args.timeout + PROMPT)?;
        answer.into_result()?;
        return done(&client, args);
    }
    match (client.post_again("/v1/shutdown", &json!({}), PROMPT), client.run_dir()) {
        (Ok(answer), _) => drop(answer.into_result()?),
        (Err(failure), Some(run_dir)) => without_agent(run_dir, failure)?,
        (Err(failure), None) => return Err(failure),
    }
    done(&client, args)
}

fn done(client: &Client, args: &ShutdownArgs) -> Result<i32, Failure> {
    let done = args.wait || !args.no_wait;
    if done {
        wait(client, args.timeout)?;
    }
    match args.json.json {
        true => print_json(&json!({ "state": if done { "stopped" } else { "stopping" } }))?,
        false if done => print("the run has ended\n")?,
        false => print("the node is stopping\n")?,
    }
    Ok(0)
}

fn without_agent(run_dir: &Path, failure: Failure) -> Result<(), Failure> {
    match keeper::ask(run_dir, &KeeperRequest::Stop, PROMPT) {
        Ok(KeeperResponse::Done { .. }) => {
            tell("no agent answers; the keeper stops the jobs by itself");
            Ok(())
        }
        Ok(KeeperResponse::Refused { error }) => Err(Failure::failed(error)),
        Ok(KeeperResponse::Figures(_)) => {
            Err(Failure::failed("the keeper answered something else"))
        }
        Err(_) => Err(failure),
    }
}

/// The keeper holds the lock to its very end.
fn is_locked(run_dir: &Path) -> bool {
    let lock = File::open(run_dir.join("lock"));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn wait(client: &Client, patience: Duration) -> Result<(), Failure> {
    let deadline = Instant::now() + patience;
    while client.is_there() || client.run_dir().is_some_and(is_locked) {
        if Instant::now() > deadline {
            return Err(Failure::failed(format!("the node is still stopping after {patience:?}")));
        }
        thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}
