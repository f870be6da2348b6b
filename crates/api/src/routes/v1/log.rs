//! `GET /v1/jobs/{job}/log` and `GET /v1/logs`: what jobs have written, and go on writing.
//!
//! Lines of text, or with `?format=json` an object a line. Read a piece at a time, as fast as the
//! client takes it: nothing is kept for a slow one. What a job of the fleet has written is on the node
//! where it runs, or has run last: that one is asked.

use crate::{
    RouterState,
    extract::{PathName, Query, flag},
    passing::{Hop, Question, pass_on},
    problem::Problem,
    wait::no_such_job,
};
use axum::{
    body::Body,
    extract::State,
    http::{Uri, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, Stream, StreamExt};
use mainstay_config::since;
use mainstay_core::name::Name;
use mainstay_net::percent::segment;
use mainstay_pool::{LOGS, Unserved};
use mainstay_wire::{
    api::{LogLine, Selection},
    logs::{self, Backlog, ConfiguredJobs, Entry, Followers, Lines, LogsOf, Wanted},
};
use serde::Deserialize;
use std::{collections::BTreeMap, fmt::Display, io, path::PathBuf, pin::Pin, time::Duration};
use tokio::{sync::watch, time::timeout};

/// A line that was written is sent after so long.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Sent at a time.
const PIECE: usize = 64 << 10;
/// One of another node that is longer is not kept together.
const LONGEST_LINE: usize = 1 << 20;

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
    /// Of this node alone, wherever a job runs.
    #[serde(default, deserialize_with = "flag")]
    here: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

pub(crate) async fn of_job(
    State(state): State<RouterState>,
    hop: Hop,
    PathName(name): PathName,
    Query(query): Query<LogQuery>,
    uri: Uri,
) -> Result<Response, Problem> {
    let refused = query.jobs.is_some().then_some("jobs").or(query.all.then_some("all"));
    if let Some(key) = refused {
        return Err(bad(key)("the path names a job already"));
    }
    let mut sources = LogSources::default();
    sources.add(&state, &name, query.here).await?;
    sources.answer(state, hop, query, uri.query()).await
}

pub(crate) async fn of_all(
    State(state): State<RouterState>,
    hop: Hop,
    Query(query): Query<LogQuery>,
    uri: Uri,
) -> Result<Response, Problem> {
    if query.all && query.jobs.is_some() {
        return Err(bad("all")("jobs are named already"));
    }
    let mut sources = LogSources::default();
    for name in query.jobs.iter().flat_map(|names| names.split(',')) {
        sources.add(&state, name, query.here).await?;
    }
    if !sources.is_empty() {
        return sources.answer(state, hop, query, uri.query()).await;
    }
    let logs_of = match query.all {
        true => LogsOf::Everybody,
        false => LogsOf::Configured(ConfiguredJobs::new(&state.handle.dirs().run, None)),
    };
    answer(state, logs_of, query).await
}

/// Jobs whose lines are asked for, and the nodes that have them.
#[derive(Debug, Default)]
struct LogSources {
    here: Vec<String>,
    elsewhere: BTreeMap<Name, Vec<String>>,
}

impl LogSources {
    fn is_empty(&self) -> bool {
        self.here.is_empty() && self.elsewhere.is_empty()
    }

    /// The job of this name, its instances, or what has left something to read.
    async fn add(&mut self, state: &RouterState, name: &str, here: bool) -> Result<(), Problem> {
        let jobs = state.handle.jobs(Selection::Named(name.to_owned())).await?;
        let me = state.handle.node_name();
        for job in &jobs {
            let home = job.placed.as_ref().filter(|_| !here).zip(me);
            let home = home.and_then(|(placed, me)| placed.last_home(me));
            match home.filter(|home| Some(*home) != me) {
                Some(node) => self.add_elsewhere(node, job.name.as_str()),
                None => self.here.push(job.name.to_string()),
            }
        }
        if !jobs.is_empty() {
            return Ok(());
        }
        if name == logs::OWN || has_written(state, name).await? {
            self.here.push(name.to_owned());
            return Ok(());
        }
        let fleet = if here { None } else { state.handle.fleet().await? };
        let placed = fleet.as_ref().and_then(|fleet| fleet.job(name)).zip(me);
        match placed.and_then(|(job, me)| job.last_home(me)) {
            Some(node) => self.add_elsewhere(node, name),
            None => return Err(no_such_job(state, name).await?),
        }
        Ok(())
    }

    fn add_elsewhere(&mut self, node: &Name, job: &str) {
        self.elsewhere.entry(node.clone()).or_default().push(job.to_owned());
    }

    /// Those of one node in the order of their times; what several nodes have, a node after the
    /// other, or as it comes.
    async fn answer(
        self,
        state: RouterState,
        hop: Hop,
        query: LogQuery,
        words: Option<&str>,
    ) -> Result<Response, Problem> {
        let LogSources { here, elsewhere } = self;
        let follow = query.follow;
        let mut answers = Vec::new();
        if !here.is_empty() {
            answers.push(answer(state.clone(), LogsOf::Named(here), query).await?);
        }
        for (node, jobs) in elsewhere {
            let question = Question::get(target(&jobs, words));
            answers.push(pass_on(&state, hop, &node, question).await?.into_response().await?);
        }
        joined(answers, follow).ok_or_else(Problem::no_such_route)
    }
}

/// One answer of several.
fn joined(mut answers: Vec<Response>, follow: bool) -> Option<Response> {
    if answers.len() < 2 {
        return answers.pop();
    }
    let heads_and_bodies = answers.into_iter().map(Response::into_parts);
    let (heads, bodies): (Vec<_>, Vec<_>) = heads_and_bodies.unzip();
    let head = heads.into_iter().next()?;
    let body = match follow {
        true => Body::from_stream(stream::select_all(bodies.into_iter().map(whole_lines))),
        false => Body::from_stream(
            stream::iter(bodies.into_iter().map(Body::into_data_stream)).flatten(),
        ),
    };
    Some(Response::from_parts(head, body))
}

/// Pieces that end where a line does: so that none of another node comes between.
fn whole_lines(body: Body) -> Pin<Box<dyn Stream<Item = Result<Bytes, axum::Error>> + Send>> {
    let begin = (body.into_data_stream(), BytesMut::new());
    Box::pin(stream::unfold(begin, |(mut body, mut rest)| async {
        loop {
            match body.next().await {
                Some(Ok(piece)) => rest.extend_from_slice(&piece),
                Some(Err(error)) => return Some((Err(error), (body, rest))),
                None if rest.is_empty() => return None,
                None => return Some((Ok(rest.split().freeze()), (body, rest))),
            }
            let end = rest.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
            if let Some(end) = end.or((rest.len() > LONGEST_LINE).then_some(rest.len())) {
                return Some((Ok(rest.split_to(end).freeze()), (body, rest)));
            }
        }
    }))
}

/// How another node is asked for these, with the other words of the query.
fn target(jobs: &[String], words: Option<&str>) -> String {
    let kept = |word: &&str| !word.starts_with("jobs=") && !word.starts_with("here=");
    let words: Vec<&str> = words.unwrap_or("").split('&').filter(kept).collect();
    let jobs: Vec<String> = jobs.iter().map(|job| segment(job)).collect();
    format!("/v1/logs?jobs={}&here=true&{}", jobs.join(","), words.join("&"))
}

fn root(state: &RouterState) -> PathBuf {
    state.handle.dirs().state.join("logs")
}

async fn has_written(state: &RouterState, name: &str) -> Result<bool, Unserved> {
    let Ok(name) = Name::new(name) else { return Ok(false) };
    let dir = root(state).join(name.as_str());
    LOGS.run(move || dir.is_dir()).await
}

async fn answer(state: RouterState, logs_of: LogsOf, query: LogQuery) -> Result<Response, Problem> {
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
