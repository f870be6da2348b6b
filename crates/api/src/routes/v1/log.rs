//! `GET /v1/jobs/{job}/log` and `GET /v1/logs`: what jobs have written, and go on writing.
//!
//! Lines of text, or with `?format=json` an object a line. Read a piece at a time, as fast as the
//! client takes it: nothing is kept for a slow one.

use crate::{
    AppState,
    extract::{PathName, Query},
    problem::Problem,
};
use axum::{
    body::Body,
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use mainstay_config::since;
use mainstay_core::name::Name;
use mainstay_pool::{LOGS, Unserved};
use mainstay_wire::{
    api::{LogLine, Selection},
    logs::{self, Backlog, ConfiguredJobs, Entry, Followers, Lines, LogsOf, Wanted},
};
use serde::Deserialize;
use std::{fmt::Display, io, path::PathBuf, time::Duration};
use tokio::{sync::watch, time::timeout};

/// A line that was written is sent after so long.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Sent at a time.
const PIECE: usize = 64 << 10;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogQuery {
    lines: Option<String>,
    since: Option<String>,
    #[serde(default)]
    follow: bool,
    #[serde(default)]
    format: LogFormat,
    /// Names, with commas between them; only where the path names none.
    jobs: Option<String>,
    /// Also jobs of earlier configurations; only where none is named.
    #[serde(default)]
    all: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

pub(crate) async fn of_job(
    State(state): State<AppState>,
    PathName(name): PathName,
    Query(query): Query<LogQuery>,
) -> Result<Response, Problem> {
    let refused = query.jobs.is_some().then_some("jobs").or(query.all.then_some("all"));
    if let Some(key) = refused {
        return Err(bad(key)("the path names a job already"));
    }
    let names = meant(&state, &name).await?;
    answer(state, LogsOf::Named(names), query).await
}

/// The job of this name, its instances, or what has left something to read.
async fn meant(state: &AppState, name: &str) -> Result<Vec<String>, Problem> {
    let jobs = state.handle.jobs(Selection::Named(name.to_owned())).await?;
    match jobs.is_empty() {
        false => Ok(jobs.iter().map(|job| job.name.to_string()).collect()),
        true if name == logs::OWN || has_written(state, name).await? => Ok(vec![name.to_owned()]),
        true => Err(Problem::no_such_job(name, None)),
    }
}

pub(crate) async fn of_all(
    State(state): State<AppState>,
    Query(query): Query<LogQuery>,
) -> Result<Response, Problem> {
    if query.all && query.jobs.is_some() {
        return Err(bad("all")("jobs are named already"));
    }
    let mut names = Vec::new();
    for name in query.jobs.iter().flat_map(|names| names.split(',')) {
        names.extend(meant(&state, name).await?);
    }
    let logs_of = match (names.is_empty(), query.all) {
        (false, _) => LogsOf::Named(names),
        (true, true) => LogsOf::Everybody,
        (true, false) => LogsOf::Configured(ConfiguredJobs::new(&state.handle.dirs().run, None)),
    };
    answer(state, logs_of, query).await
}

fn root(state: &AppState) -> PathBuf {
    state.handle.dirs().state.join("logs")
}

async fn has_written(state: &AppState, name: &str) -> Result<bool, Unserved> {
    let Ok(name) = Name::new(name) else { return Ok(false) };
    let dir = root(state).join(name.as_str());
    LOGS.run(move || dir.is_dir()).await
}

async fn answer(state: AppState, logs_of: LogsOf, query: LogQuery) -> Result<Response, Problem> {
    let wanted = Wanted {
        lines: query.lines.as_deref().map(str::parse::<Lines>).transpose().map_err(bad("lines"))?,
        since: query.since.as_deref().map(since).transpose().map_err(bad("since"))?,
    };
    let named = !matches!(&logs_of, LogsOf::Named(names) if names.len() == 1);
    let root = root(&state);
    let opened = LOGS.run(move || logs::open(&root, logs_of, wanted)).await?;
    let (backlog, followers) =
        opened.map_err(|error| Problem::broken(format!("cannot read the logs: {error}")))?;
    let reader = LogReader {
        backlog: Some(backlog),
        followers: query.follow.then_some(followers),
        ending: state.ending,
        style: LineStyle { format: query.format, named },
    };
    let kind = match query.format {
        LogFormat::Text => "text/plain; charset=utf-8",
        LogFormat::Json => "application/x-ndjson",
    };
    let body = Body::from_stream(stream::try_unfold(reader, LogReader::next));
    Ok(([(CONTENT_TYPE, kind)], body).into_response())
}

fn bad<E: Display>(key: &'static str) -> impl Fn(E) -> Problem {
    move |why| Problem::bad_request(format!("the query is not understood: {key}: {why}"))
}

struct LogReader {
    backlog: Option<Backlog>,
    followers: Option<Followers>,
    ending: watch::Receiver<bool>,
    style: LineStyle,
}

#[derive(Debug, Clone, Copy)]
struct LineStyle {
    format: LogFormat,
    /// Several jobs: each line says whose it is.
    named: bool,
}

impl LogReader {
    async fn next(mut self) -> io::Result<Option<(Bytes, LogReader)>> {
        let style = self.style;
        if let Some(backlog) = self.backlog.take() {
            let (piece, backlog) = off_the_loop(move || Ok(style.piece(backlog))).await?;
            self.backlog = backlog;
            if !piece.is_empty() {
                return Ok(Some((piece, self)));
            }
        }
        loop {
            let Some(mut followers) = self.followers.take() else { return Ok(None) };
            // Looked at before the files: what was written before the end is still sent.
            let over = *self.ending.borrow();
            let (fresh, followers) = off_the_loop(move || {
                let fresh = followers.read()?;
                let mut piece = Vec::new();
                fresh.iter().for_each(|(name, entry)| style.line(name, entry, &mut piece));
                Ok((piece, followers))
            })
            .await?;
            self.followers = Some(followers);
            if !fresh.is_empty() {
                return Ok(Some((fresh.into(), self)));
            }
            if over {
                return Ok(None);
            }
            // The end of the run cuts the pause short.
            let _ = timeout(LOOK_AGAIN, self.ending.wait_for(|over| *over)).await;
        }
    }
}

/// Disks may take their time, the loop may not.
async fn off_the_loop<T: Send + 'static>(
    read: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    LOGS.run(read).await?
}

impl LineStyle {
    /// The next piece of what was written before, and the rest of it.
    fn piece(self, mut backlog: Backlog) -> (Bytes, Option<Backlog>) {
        let mut piece = Vec::new();
        while piece.len() < PIECE {
            let Some((name, entry)) = backlog.next() else { return (piece.into(), None) };
            self.line(&name, &entry, &mut piece);
        }
        (piece.into(), Some(backlog))
    }

    fn line(self, job: &str, entry: &Entry, piece: &mut Vec<u8>) {
        match self.format {
            LogFormat::Json => piece.extend(LogLine::of(job, entry).to_json().into_bytes()),
            LogFormat::Text => {
                if self.named {
                    piece.extend(format!("{job} | ").into_bytes());
                }
                piece.extend(&entry.text);
            }
        }
        piece.push(b'\n');
    }
}
