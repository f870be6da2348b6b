//! `/logtail/NAME[/CHANNEL]` and `/mainlogtail`: the end of a log, and what is written from then on.

use super::supervisor::{
    Supervisor, groups,
    log::{Channel, LogText},
};
use crate::problem::Problem;
use axum::{
    body::Body,
    extract::{Path, State},
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use mainstay_pool::LOGS;
use mainstay_wire::logs::{self, Followers, Lines, LogsOf, Wanted};
use std::{io, time::Duration};
use tokio::{sync::watch, time::timeout};

/// Shown of what was there before.
const LAST: usize = 1024;
/// A line that was written is sent after so long.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

pub(super) async fn stdout(
    State(supervisor): State<Supervisor>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    of_process(supervisor, &name, Channel::Stdout).await
}

pub(super) async fn channel(
    State(supervisor): State<Supervisor>,
    Path((name, channel)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let channel = Channel::named(&channel).ok_or_else(Problem::no_such_route)?;
    of_process(supervisor, &name, channel).await
}

pub(super) async fn main(State(supervisor): State<Supervisor>) -> Result<Response, Problem> {
    let log = supervisor.main_log();
    follow(&supervisor, log).await
}

async fn of_process(
    supervisor: Supervisor,
    name: &str,
    channel: Channel,
) -> Result<Response, Problem> {
    let none = || Problem::no_such_route();
    let status = supervisor.status().await.map_err(|_| none())?;
    let job = groups::process(&status.jobs, name).map_err(|_| none())?;
    let log = supervisor.log_of(job, channel).await.map_err(|_| none())?;
    follow(&supervisor, log.ok_or_else(none)?).await
}

async fn follow(supervisor: &Supervisor, log: LogText) -> Result<Response, Problem> {
    let begin = move || {
        let wanted = Wanted { lines: Some(Lines::Last(LAST)), since: None };
        let named = LogsOf::Named(vec![log.name.clone()]);
        // Followed from where the end is that is shown.
        let (backlog, followers) = logs::open(&log.root, named, wanted)?;
        let mut text = Vec::new();
        for (_, entry) in backlog.filter(|(_, entry)| log.has(entry)) {
            text.extend_from_slice(&entry.text);
            text.push(b'\n');
            let surplus = text.len().saturating_sub(LAST);
            text.drain(..surplus);
        }
        Ok::<_, io::Error>((text, Tail { log, followers }))
    };
    let unread = |error: io::Error| Problem::broken(format!("cannot read the log: {error}"));
    let (text, tail) = LOGS.run(begin).await?.map_err(unread)?;
    let ending = supervisor.state.ending.clone();
    let begun = stream::iter((!text.is_empty()).then(|| Ok(Bytes::from(text))));
    let rest = stream::try_unfold((tail, ending), |(tail, ending)| next(tail, ending));
    let body = Body::from_stream(futures_util::StreamExt::chain(begun, rest));
    Ok(([(CONTENT_TYPE, "text/plain;charset=utf-8")], body).into_response())
}

struct Tail {
    log: LogText,
    followers: Followers,
}

type Rest = (Tail, watch::Receiver<bool>);

async fn next(
    mut tail: Tail,
    mut ending: watch::Receiver<bool>,
) -> io::Result<Option<(Bytes, Rest)>> {
    loop {
        // Looked at before the files: what was written before the end is still sent.
        let over = *ending.borrow();
        let (fresh, back) = LOGS
            .run(move || {
                let mut fresh = Vec::new();
                for (_, entry) in tail.followers.read()?.iter().filter(|it| tail.log.has(&it.1)) {
                    fresh.extend_from_slice(&entry.text);
                    fresh.push(b'\n');
                }
                Ok::<_, io::Error>((fresh, tail))
            })
            .await??;
        tail = back;
        if !fresh.is_empty() {
            return Ok(Some((fresh.into(), (tail, ending))));
        }
        if over {
            return Ok(None);
        }
        // The end of the run cuts the pause short.
        let _ = timeout(LOOK_AGAIN, ending.wait_for(|over| *over)).await;
    }
}
