//! The disk that a directory is on, for somebody who must not wait for one that has stopped answering.
//!
//! What is in memory (tmpfs) never waits: whoever asks does the work himself. On a disk a thread
//! beside does it, one thing after the other, and is waited for as long as a disk that is well
//! takes. Once it hangs nobody waits any more: what can be done later is (the last word for each
//! file, in order), all else is refused.

use crate::{apart::Apart, offload};
use rustix::fs::{FsWord, statfs};
use std::{
    collections::VecDeque,
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Longer than a disk that is well takes.
const PATIENCE: Duration = Duration::from_millis(500);
/// File systems in memory.
const TMPFS: FsWord = 0x0102_1994;
const RAMFS: FsWord = 0x8584_58f6_u32 as FsWord;

/// The disk of one directory.
#[derive(Debug, Clone)]
pub struct Disk {
    /// `None`: it is memory.
    beside: Option<Arc<Beside>>,
}

struct Beside {
    work: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// The number of the last that was put in line.
    last: u64,
    /// The number of what is done now, and since when.
    under_way: Option<(u64, Instant)>,
    finished: u64,
    /// Somebody has waited in vain, and nothing was finished since.
    silent: bool,
}

struct Waiting {
    number: u64,
    /// What is put in line for the same file later takes its place.
    file: Option<PathBuf>,
    work: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beside").finish_non_exhaustive()
    }
}

impl Disk {
    /// The one that this directory is on.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn of(dir: &Path) -> io::Result<Disk> {
        let memory = statfs(dir).is_ok_and(|it| it.f_type == TMPFS || it.f_type == RAMFS);
        if memory {
            return Ok(Disk::waited_for());
        }
        Disk::beside("run-dir")
    }

    /// All that users may name something on: any of them may hang, and then stands for all.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn of_users() -> io::Result<Disk> {
        Disk::beside("user-disks")
    }

    fn beside(name: &str) -> io::Result<Disk> {
        let beside = Arc::new(Beside { work: Mutex::default(), changed: Condvar::new() });
        let worker = beside.clone();
        offload::begin(name, move || worker.work_on())?;
        Ok(Disk { beside: Some(beside) })
    }

    /// One whose user does the work himself, however long it takes.
    #[must_use]
    pub fn waited_for() -> Disk {
        Disk { beside: None }
    }

    /// Does it, unless the disk does not answer.
    ///
    /// # Errors
    /// Its own, and [`io::ErrorKind::TimedOut`]: it was not done, or is not done yet.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        match &self.beside {
            None => work(),
            Some(beside) if beside.hangs() => Err(silent()),
            Some(beside) => beside.ask(None, work),
        }
    }

    /// Does it now, or as soon as the disk answers again, unless something else is to be done with
    /// the same file by then.
    ///
    /// # Errors
    /// Its own, and [`io::ErrorKind::TimedOut`]: it is not done yet.
    pub fn put(
        &self,
        file: &Path,
        work: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        match &self.beside {
            None => work(),
            Some(beside) => beside.ask(Some(file.to_owned()), work),
        }
    }

    /// Something is not done yet.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.beside.as_ref().is_some_and(|beside| {
            let queue = beside.lock();
            queue.finished != queue.last
        })
    }
}

impl Beside {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is under way takes too long.
    fn hangs(&self) -> bool {
        let queue = self.lock();
        queue.silent || queue.under_way.is_some_and(|(_, since)| since.elapsed() >= PATIENCE)
    }

    fn ask<T: Send + 'static>(
        &self,
        file: Option<PathBuf>,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let answer = Arc::new(Mutex::new(None));
        let told = answer.clone();
        let work = Box::new(move || {
            let came = work();
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(came);
        });
        let number = self.queue(file, work);
        if !self.hangs() {
            let queue = self.lock();
            let unfinished = |queue: &mut Queue| queue.finished < number;
            let waited = self.changed.wait_timeout_while(queue, PATIENCE, unfinished);
            let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
            queue.silent = queue.finished < number;
        }
        let came = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        came.unwrap_or_else(|| Err(silent()))
    }

    fn queue(&self, file: Option<PathBuf>, work: Box<dyn FnOnce() + Send>) -> u64 {
        let mut queue = self.lock();
        let same = |waiting: &&mut Waiting| file.is_some() && waiting.file == file;
        if let Some(waiting) = queue.waiting.iter_mut().find(same) {
            waiting.work = work;
            return waiting.number;
        }
        queue.last += 1;
        let number = queue.last;
        queue.waiting.push_back(Waiting { number, file, work });
        self.changed.notify_all();
        number
    }

    fn work_on(&self) {
        let mut apart = Apart::new();
        loop {
            let mut queue = self.lock();
            let Waiting { number, work, .. } = loop {
                match queue.waiting.pop_front() {
                    Some(next) => break next,
                    None => {
                        let woken = self.changed.wait(queue);
                        queue = woken.unwrap_or_else(PoisonError::into_inner);
                    }
                }
            };
            queue.under_way = Some((number, Instant::now()));
            drop(queue);
            apart.run(work);
            let mut queue = self.lock();
            (queue.under_way, queue.finished, queue.silent) = (None, number, false);
            drop(queue);
            self.changed.notify_all();
        }
    }
}

fn silent() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the disk does not answer")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::mpsc::channel, thread};

    fn beside() -> Disk {
        Disk::of_users().expect("a thread")
    }

    #[test]
    fn who_asks_gets_the_answer() {
        let disk = beside();
        assert_eq!(disk.run(|| Ok(7)).expect("done"), 7);
        let failed = disk.run(|| Err::<(), _>(io::ErrorKind::NotFound.into()));
        assert_eq!(failed.expect_err("told").kind(), io::ErrorKind::NotFound);
        assert!(!disk.is_busy());
    }

    #[test]
    fn a_disk_that_hangs_is_waited_for_once_and_the_last_word_is_kept() {
        let disk = beside();
        let (thaw, frozen) = channel::<()>();
        let (tell, told) = channel();
        let hung = disk.run(move || frozen.recv().map_err(io::Error::other));
        assert_eq!(hung.expect_err("silent").kind(), io::ErrorKind::TimedOut);
        let begun = Instant::now();
        for (file, word) in [("a", 1), ("b", 2), ("a", 3), ("a", 4)] {
            let tell = tell.clone();
            let put = disk.put(Path::new(file), move || tell.send(word).map_err(io::Error::other));
            assert_eq!(put.expect_err("silent").kind(), io::ErrorKind::TimedOut);
        }
        assert!(disk.run(|| Ok(())).is_err(), "what cannot be done later is refused");
        assert!(begun.elapsed() < PATIENCE, "nobody waits again");
        assert!(disk.is_busy());
        thaw.send(()).expect("it waits");
        assert_eq!([told.recv(), told.recv()], [Ok(4), Ok(2)]);
        while disk.is_busy() {
            thread::yield_now();
        }
        assert!(disk.run(|| Ok(())).is_ok());
    }
}
