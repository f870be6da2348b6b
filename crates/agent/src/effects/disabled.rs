//! `disabled` in the state directory: the jobs that stay disabled over runs, one name a line.
//!
//! A request that changes them is taken once that is on the disk, file and directory, and refused
//! if it does not get there: what was answered is kept. The disk is waited for outside the loop, one
//! request after the other, and for so long only.

use crate::agent::{Agent, End, Origin};
use mainstay_core::{
    name::Name,
    node::{Input, Refusal, Request},
};
use mainstay_pool::STATE_FILES;
use mainstay_sys::state_dir::{Durability, StateDir};
use mainstay_wire::api::Accepted;
use std::{
    collections::{BTreeSet, VecDeque},
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};

const FILE: &str = "disabled";
/// A disk that takes longer is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request that waits for the disk.
#[derive(Debug)]
pub(crate) struct Unkept {
    request: Request,
    caller: oneshot::Sender<Result<Accepted, Refusal>>,
    until: Instant,
}

#[derive(Debug)]
pub(crate) struct DisabledFile {
    dir: PathBuf,
    /// Behind the one that is being written.
    waiting: VecDeque<Unkept>,
    writing: Option<Writing>,
    done: mpsc::UnboundedReceiver<io::Result<()>>,
    report: mpsc::UnboundedSender<io::Result<()>>,
}

#[derive(Debug)]
struct Writing {
    jobs: Vec<Name>,
    /// `None`: nobody waits for it, or not any more.
    request: Option<Unkept>,
}

/// What has become of those who wait.
#[derive(Debug)]
pub(crate) enum Progress {
    /// An attempt to write has come to its end.
    Ended(io::Result<()>),
    /// Somebody has waited for long enough.
    Overdue,
}

impl DisabledFile {
    pub(crate) fn new(state_dir: &Path) -> DisabledFile {
        let (report, done) = mpsc::unbounded_channel();
        let dir = state_dir.to_owned();
        DisabledFile { dir, waiting: VecDeque::new(), writing: None, done, report }
    }

    fn write(&mut self, jobs: Vec<Name>, before: Vec<Name>, request: Option<Unkept>) {
        let (dir, report, new) = (self.dir.clone(), self.report.clone(), jobs.clone());
        self.writing = Some(Writing { jobs, request });
        tokio::spawn(async move {
            let written = STATE_FILES.run(move || {
                let written = write(&dir, &new);
                if written.is_err() && read(&dir) == new {
                    // It is there, and may not stay there: what counts is what was before.
                    let _ = write(&dir, &before);
                }
                written
            });
            // Nobody listens only when the agent is gone.
            let _ = report.send(written.await.map_err(io::Error::from).flatten());
        });
    }

    /// Returns when something has become of a request; never if none waits. May be dropped at any
    /// time.
    pub(crate) async fn progress(&mut self) -> Progress {
        let first = self.writing.as_ref().and_then(|it| it.request.as_ref());
        match first.into_iter().chain(&self.waiting).map(|it| it.until).min() {
            Some(until) => tokio::select! {
                ended = self.done.recv() => Progress::Ended(ended.expect("this struct holds a sender")),
                () = sleep_until(until) => Progress::Overdue,
            },
            None => Progress::Ended(self.done.recv().await.expect("this struct holds a sender")),
        }
    }

    fn take_overdue(&mut self, now: Instant) -> Vec<Unkept> {
        let first = self.writing.as_mut().and_then(|it| it.request.take_if(|it| it.until <= now));
        let overdue = self.waiting.iter().take_while(|it| it.until <= now).count();
        first.into_iter().chain(self.waiting.drain(..overdue)).collect()
    }
}

impl Agent {
    /// Has a request kept before it is taken.
    pub(crate) fn keep_first(
        &mut self,
        request: Request,
        caller: oneshot::Sender<Result<Accepted, Refusal>>,
    ) -> Result<(), End> {
        let until = Instant::now() + PATIENCE;
        self.disabled.waiting.push_back(Unkept { request, caller, until });
        self.keep_next()
    }

    fn keep_next(&mut self) -> Result<(), End> {
        while self.disabled.writing.is_none() {
            let Some(unkept) = self.disabled.waiting.pop_front() else { return Ok(()) };
            match self.node.disabled_after(&unkept.request) {
                Some(jobs) => self.disabled.write(jobs, self.node.disabled(), Some(unkept)),
                None => self.take(Input::Request(unkept.request), Origin::Caller(unkept.caller))?,
            }
        }
        Ok(())
    }

    pub(crate) fn go_on_keeping(&mut self, progress: Progress) -> Result<(), End> {
        match progress {
            Progress::Overdue => {
                for unkept in self.disabled.take_overdue(Instant::now()) {
                    let reason = format!("the disk of {} does not answer", self.path_of_disabled());
                    unkept.refuse(reason);
                }
                Ok(())
            }
            Progress::Ended(written) => self.disabled_written(written),
        }
    }

    fn path_of_disabled(&self) -> String {
        self.disabled.dir.join(FILE).display().to_string()
    }

    fn disabled_written(&mut self, written: io::Result<()>) -> Result<(), End> {
        let Some(Writing { jobs, request }) = self.disabled.writing.take() else { return Ok(()) };
        let reason =
            |error: io::Error| format!("cannot write {}: {error}", self.path_of_disabled());
        match (written.map_err(reason), request) {
            (Ok(()), Some(unkept)) => {
                self.take(Input::Request(unkept.request), Origin::Caller(unkept.caller))?;
            }
            (Ok(()), None) => {}
            (Err(reason), Some(unkept)) => {
                unkept.refuse(reason);
                return self.keep_next();
            }
            (Err(reason), None) => {
                tracing::error!("which jobs are disabled is not kept over runs: {reason}");
                return self.keep_next();
            }
        }
        self.keep_what_counts(jobs);
        self.keep_next()
    }

    /// What is on the disk is what came of the last request, or of none that was answered.
    pub(crate) fn keep_what_counts(&mut self, on_disk: Vec<Name>) {
        let counts = self.node.disabled();
        let same = counts.iter().collect::<BTreeSet<_>>() == on_disk.iter().collect();
        if !same && self.disabled.writing.is_none() {
            self.disabled.write(counts, on_disk, None);
        }
    }
}

impl Unkept {
    fn refuse(self, reason: String) {
        // Nobody is left only when the client went away.
        let _ = self.caller.send(Err(Refusal::NotKept(reason)));
    }
}

/// Names that cannot be read are left out: they cannot be those of a job.
pub(crate) fn read(state_dir: &Path) -> Vec<Name> {
    let text = fs::read_to_string(state_dir.join(FILE)).unwrap_or_default();
    text.lines().filter_map(|line| Name::new(line.trim()).ok()).collect()
}

/// Takes over which jobs are disabled from another state directory, for one in which no node has
/// been yet. One that has no list has none to give.
///
/// # Errors
/// It cannot be written.
pub fn inherit_disabled(from: &Path, to: &Path) -> io::Result<()> {
    let jobs = read(from);
    if jobs.is_empty() { Ok(()) } else { write(to, &jobs) }
}

fn write(state_dir: &Path, jobs: &[Name]) -> io::Result<()> {
    let text: String = jobs.iter().map(|job| format!("{job}\n")).collect();
    StateDir::open(state_dir, Durability::Machine)?.replace(FILE, 0o666, text.as_bytes()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    fn unkept(until: Instant) -> (Unkept, oneshot::Receiver<Result<Accepted, Refusal>>) {
        let (caller, answer) = oneshot::channel();
        (Unkept { request: Request::Disable { job: name("a") }, caller, until }, answer)
    }

    #[tokio::test]
    async fn a_list_is_on_the_disk_when_its_end_is_told() {
        let dir = std::env::temp_dir().join(format!("mainstay-disabled-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let mut disabled = DisabledFile::new(&dir);
        disabled.write(vec![name("b"), name("c")], Vec::new(), None);
        assert!(matches!(disabled.progress().await, Progress::Ended(Ok(()))));
        assert_eq!(read(&dir), [name("b"), name("c")]);
        fs::remove_dir_all(&dir).expect("our own directory");
        disabled.write(Vec::new(), vec![name("b")], None);
        assert!(matches!(disabled.progress().await, Progress::Ended(Err(_))));
    }

    #[tokio::test]
    async fn who_waits_for_too_long_is_told_and_the_write_goes_on() {
        let mut disabled = DisabledFile::new(Path::new("/nowhere"));
        let now = Instant::now();
        let (first, mut answer) = unkept(now);
        disabled.writing = Some(Writing { jobs: Vec::new(), request: Some(first) });
        let (second, _later) = unkept(now + PATIENCE);
        disabled.waiting.push_back(second);
        assert!(matches!(disabled.progress().await, Progress::Overdue));
        for unkept in disabled.take_overdue(now) {
            unkept.refuse("late".to_owned());
        }
        assert_eq!(answer.try_recv().expect("told"), Err(Refusal::NotKept("late".to_owned())));
        assert!(disabled.writing.is_some_and(|it| it.request.is_none()));
        assert_eq!(disabled.waiting.len(), 1);
    }
}
