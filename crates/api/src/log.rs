//! `GET /v1/jobs/{job}/log` and `GET /v1/logs`: what jobs have written, and go on writing.
//!
//! Lines of text, or with `?format=json` an object a line. Read a piece at a time, as fast as the
//! client takes it: nothing is kept for a slow one.

use crate::{
    Reach,
    body::{Asked, InPath},
    logs::{self, Backlog, Entry, Followers, Lines, Wanted},
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
use mainstay_agent::Selection;
use mainstay_core::name::Name;
use serde::Deserialize;
use serde_json::json;
use std::{io, path::PathBuf, time::Duration};
use tokio::{sync::watch, task::spawn_blocking, time::timeout};

/// A line that was written is sent after so long.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Sent at a time.
const PIECE: usize = 64 << 10;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    lines: Option<String>,
    since: Option<String>,
    #[serde(default)]
    follow: bool,
    #[serde(default)]
    format: Format,
    /// Names, with commas between them; only where the path names none.
    jobs: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
}

pub(crate) async fn of_job(
    State(reach): State<Reach>,
    InPath(name): InPath,
    Asked(query): Asked<Query>,
) -> Result<Response, Problem> {
    if query.jobs.is_some() {
        return Err(bad("jobs")("the path names a job already".to_owned()));
    }
    let names = meant(&reach, &name).await?;
    answer(reach, names, query).await
}

/// The job of this name, its instances, or what has left something to read.
async fn meant(reach: &Reach, name: &str) -> Result<Vec<String>, Problem> {
    let jobs = reach.handle.jobs(Selection::Named(name.to_owned())).await?;
    match jobs.is_empty() {
        false => Ok(jobs.iter().map(|job| job.name.to_string()).collect()),
        true if name == logs::OWN || has_written(reach, name).await => Ok(vec![name.to_owned()]),
        true => Err(Problem::no_such_job(name)),
    }
}

pub(crate) async fn of_all(
    State(reach): State<Reach>,
    Asked(query): Asked<Query>,
) -> Result<Response, Problem> {
    let mut names = Vec::new();
    for name in query.jobs.iter().flat_map(|names| names.split(',')) {
        names.extend(meant(&reach, name).await?);
    }
    answer(reach, names, query).await
}

fn root(reach: &Reach) -> PathBuf {
    reach.handle.dirs().state.join("logs")
}

async fn has_written(reach: &Reach, name: &str) -> bool {
    let Ok(name) = Name::new(name) else { return false };
    let dir = root(reach).join(name.as_str());
    spawn_blocking(move || dir.is_dir()).await.unwrap_or(false)
}

async fn answer(reach: Reach, names: Vec<String>, query: Query) -> Result<Response, Problem> {
    let wanted = Wanted {
        lines: query.lines.as_deref().map(str::parse::<Lines>).transpose().map_err(bad("lines"))?,
        since: query.since.as_deref().map(logs::since).transpose().map_err(bad("since"))?,
    };
    let (root, named) = (root(&reach), names.len() != 1);
    let opened = spawn_blocking(move || logs::open(&root, &names, wanted)).await;
    let (backlog, followers) = opened
        .map_err(io::Error::other)
        .and_then(|opened| opened)
        .map_err(|error| Problem::broken(format!("cannot read the logs: {error}")))?;
    let reader = Reader {
        backlog: Some(backlog),
        followers: query.follow.then_some(followers),
        ending: reach.ending,
        style: Style { format: query.format, named },
    };
    let kind = match query.format {
        Format::Text => "text/plain; charset=utf-8",
        Format::Json => "application/x-ndjson",
    };
    let body = Body::from_stream(stream::try_unfold(reader, Reader::next));
    Ok(([(CONTENT_TYPE, kind)], body).into_response())
}

fn bad(key: &'static str) -> impl Fn(String) -> Problem {
    move |why| Problem::bad_request(format!("the query is not understood: {key}: {why}"))
}

struct Reader {
    backlog: Option<Backlog>,
    followers: Option<Followers>,
    ending: watch::Receiver<bool>,
    style: Style,
}

#[derive(Debug, Clone, Copy)]
struct Style {
    format: Format,
    /// Several jobs: each line says whose it is.
    named: bool,
}

impl Reader {
    async fn next(mut self) -> io::Result<Option<(Bytes, Reader)>> {
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
    spawn_blocking(read).await.map_err(io::Error::other)?
}

impl Style {
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
            Format::Json => piece.extend(line(job, entry).into_bytes()),
            Format::Text => {
                if self.named {
                    piece.extend(format!("{job} | ").into_bytes());
                }
                piece.extend(&entry.text);
            }
        }
        piece.push(b'\n');
    }
}

/// An entry as JSON: `{"time","job","stream","text"}`.
#[must_use]
pub fn line(job: &str, entry: &Entry) -> String {
    let text = String::from_utf8_lossy(&entry.text);
    json!({ "time": entry.time, "job": job, "stream": entry.stream, "text": text }).to_string()
}
