//! What processes have written, as text: the stamps of the files do not count.
//!
//! An offset counts the bytes of the text that is kept, from the oldest. One answer holds 1 MiB at
//! most.

use super::{Supervisor, groups, outcome};
use crate::xmlrpc::{
    fault::{Code, Fault},
    value::{Params, XmlValue},
};
use mainstay_core::plan::{FileFormat, JobPlan, Stderr};
use mainstay_pool::LOGS;
use mainstay_wire::{
    api::JobStatus,
    logs::{self, Entry, Lines, LogsOf, OWN, Wanted},
};
use std::{
    io,
    path::{Path, PathBuf},
};

/// Of one answer.
const MOST: usize = 1 << 20;
/// Looked at first for the last bytes; more if they are short.
const LINES: usize = 256;

/// Which of the two a process has written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    Stdout,
    Stderr,
}

impl Channel {
    pub(crate) fn named(name: &str) -> Option<Channel> {
        match name {
            "stdout" => Some(Channel::Stdout),
            "stderr" => Some(Channel::Stderr),
            _ => None,
        }
    }

    /// What has no stamp does not say where it came from.
    pub(crate) fn has(self, entry: &Entry) -> bool {
        (entry.stream == Some("stderr")) == (self == Channel::Stderr)
    }
}

/// The log of a job, or of the node itself.
#[derive(Debug, Clone)]
pub(crate) struct LogText {
    pub(crate) root: PathBuf,
    pub(crate) name: String,
    /// `None`: both.
    pub(crate) channel: Option<Channel>,
}

impl LogText {
    fn entries(&self, lines: Lines) -> io::Result<impl Iterator<Item = Entry>> {
        let wanted = Wanted { lines: Some(lines), since: None };
        let (backlog, _) = logs::open(&self.root, LogsOf::Named(vec![self.name.clone()]), wanted)?;
        Ok(backlog.map(|(_, entry)| entry))
    }

    pub(crate) fn has(&self, entry: &Entry) -> bool {
        self.channel.is_none_or(|channel| channel.has(entry))
    }

    /// The last bytes of it.
    pub(crate) fn last(&self, most: usize) -> io::Result<Vec<u8>> {
        let mut lines = LINES;
        loop {
            let (mut count, mut text) = (0, End::new(most));
            for entry in self.entries(Lines::Last(lines))? {
                count += 1;
                if self.has(&entry) {
                    text.push(&entry);
                }
            }
            if text.passed + text.bytes.len() >= most || count < lines {
                return Ok(text.take());
            }
            lines = lines.saturating_mul(16);
        }
    }

    /// Its last bytes, and how many there are in all.
    fn end(&self, most: usize) -> io::Result<(Vec<u8>, usize)> {
        let mut text = End::new(most);
        self.entries(Lines::All)?.filter(|entry| self.has(entry)).for_each(|it| text.push(&it));
        let size = text.passed + text.bytes.len();
        Ok((text.take(), size))
    }

    /// From an offset on, so many bytes.
    fn part(&self, offset: usize, length: usize) -> io::Result<Vec<u8>> {
        let (mut passed, mut part) = (0, Vec::new());
        for entry in self.entries(Lines::All)?.filter(|entry| self.has(entry)) {
            let line = [entry.text.as_slice(), b"\n"].concat();
            let skipped = offset.saturating_sub(passed).min(line.len());
            passed += line.len();
            part.extend_from_slice(&line[skipped..]);
            if part.len() >= length {
                part.truncate(length);
                break;
            }
        }
        Ok(part)
    }
}

/// The last bytes of what is pushed.
struct End {
    most: usize,
    bytes: Vec<u8>,
    /// No longer in it.
    passed: usize,
}

impl End {
    fn new(most: usize) -> End {
        End { most, bytes: Vec::new(), passed: 0 }
    }

    fn push(&mut self, entry: &Entry) {
        self.bytes.extend_from_slice(&entry.text);
        self.bytes.push(b'\n');
        // Not with every line: that would move all the others each time.
        if self.bytes.len() > 2 * self.most + (64 << 10) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let surplus = self.bytes.len().saturating_sub(self.most);
        self.bytes.drain(..surplus);
        self.passed += surplus;
    }

    fn take(mut self) -> Vec<u8> {
        self.cut();
        self.bytes
    }
}

impl Supervisor {
    pub(super) fn logs(&self) -> PathBuf {
        self.state.handle.dirs().state.join("logs")
    }

    pub(crate) fn main_log(&self) -> LogText {
        LogText { root: self.logs(), name: OWN.to_owned(), channel: None }
    }

    /// The log of a process, if it has one.
    pub(crate) async fn log_of(
        &self,
        job: &JobStatus,
        channel: Channel,
    ) -> Result<Option<LogText>, Fault> {
        let plan = self.job_plan(&job.name).await?;
        let kept = plan.is_none_or(|plan| is_kept(&plan, channel));
        let log = LogText { root: self.logs(), name: job.name.to_string(), channel: Some(channel) };
        let dir = log.root.join(&log.name);
        let written = job.incarnation > 0 || LOGS.run(move || dir.is_dir()).await?;
        Ok((kept && written).then_some(log))
    }

    pub(super) async fn read_main(&self, params: &Params) -> Result<XmlValue, Fault> {
        read(self.main_log(), params.int(0)?, params.int(1)?).await
    }

    pub(super) async fn read(
        &self,
        jobs: &[JobStatus],
        channel: Channel,
        params: &Params,
    ) -> Result<XmlValue, Fault> {
        let (name, offset, length) = (params.text(0)?, params.int(1)?, params.int(2)?);
        let job = groups::process(jobs, name)?;
        match self.log_of(job, channel).await? {
            Some(log) => read(log, offset, length).await,
            None => Err(Fault::about(Code::NoFile, name)),
        }
    }

    /// Text, where it ends, and whether some of it was passed over.
    pub(super) async fn tail(
        &self,
        jobs: &[JobStatus],
        channel: Channel,
        params: &Params,
    ) -> Result<XmlValue, Fault> {
        let (name, offset, length) = (params.text(0)?, params.int(1)?, params.int(2)?);
        let job = groups::process(jobs, name)?;
        let Some(log) = self.log_of(job, channel).await? else {
            return Ok(ending(&[], 0, false));
        };
        let length = usize::try_from(length).unwrap_or(0);
        let (mut end, size) = off_the_loop(move || log.end(length.min(MOST))).await?;
        let offset = usize::try_from(offset).unwrap_or(0);
        let overflow = size > offset.saturating_add(length);
        if !overflow && offset >= size {
            end.clear();
        }
        Ok(ending(&end, size, overflow))
    }

    pub(super) async fn clear_main(&self) -> Result<XmlValue, Fault> {
        clear(self.logs(), OWN.to_owned()).await?;
        Ok(XmlValue::Bool(true))
    }

    pub(super) async fn clear(&self, jobs: &[JobStatus], name: &str) -> Result<XmlValue, Fault> {
        let job = groups::process(jobs, name)?;
        clear(self.logs(), job.name.to_string()).await?;
        Ok(XmlValue::Bool(true))
    }

    pub(super) async fn clear_all(&self, jobs: &[JobStatus]) -> Result<XmlValue, Fault> {
        let mut results = Vec::new();
        for job in jobs {
            results.push(outcome(job, clear(self.logs(), job.name.to_string()).await));
        }
        Ok(XmlValue::Array(results))
    }
}

fn is_kept(plan: &JobPlan, channel: Channel) -> bool {
    let written = match (channel, plan.stderr) {
        (Channel::Stdout, _) | (Channel::Stderr, Stderr::Separate) => true,
        (Channel::Stderr, Stderr::Joined | Stderr::Inherit) => false,
    };
    written && plan.log.file != FileFormat::None
}

fn ending(text: &[u8], size: usize, overflow: bool) -> XmlValue {
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let text = XmlValue::text(String::from_utf8_lossy(text));
    XmlValue::Array(vec![text, XmlValue::int(size), XmlValue::Bool(overflow)])
}

/// From an offset so many bytes, 0: all of them; with a negative offset and no length the last.
async fn read(log: LogText, offset: i64, length: i64) -> Result<XmlValue, Fault> {
    let bad = || Fault::of(Code::BadArguments);
    let size = |number: i64| usize::try_from(number).map_err(|_| bad());
    let text = match (offset, length) {
        (..0, 0) => {
            let most = size(offset.saturating_neg())?.min(MOST);
            off_the_loop(move || log.last(most)).await?
        }
        (..0, _) | (_, ..0) => return Err(bad()),
        (offset, length) => {
            let (offset, length) = (size(offset)?, size(length)?);
            let length = if length == 0 { MOST } else { length.min(MOST) };
            off_the_loop(move || log.part(offset, length)).await?
        }
    };
    Ok(XmlValue::text(String::from_utf8_lossy(&text)))
}

async fn clear(root: PathBuf, name: String) -> Result<(), Fault> {
    let dir: &Path = name.as_ref();
    let dir = root.join(dir);
    off_the_loop(move || logs::clear(&dir)).await
}

/// Disks may take their time, the loop may not.
async fn off_the_loop<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Fault> {
    LOGS.run(work).await?.map_err(|error| Fault::about(Code::Failed, error))
}
