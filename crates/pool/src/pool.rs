//! One pool: so many threads, a queue of so many questions, and a time limit for each answer.

use mainstay_sys::latency;
use std::{
    collections::VecDeque,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};
use tokio::{sync::oneshot, time::timeout};

/// Why there is no answer. Nothing was done, or nobody knows whether.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unserved {
    #[error("too many wait for a thread to {what}: try again later")]
    Full { what: &'static str },
    #[error("there is no thread to {what}: the node has as many processes as it may have")]
    NoThread { what: &'static str },
    #[error("no answer within {limit:?} from the thread that should {what}")]
    Late { what: &'static str, limit: Duration },
    #[error("the thread that should {what} has broken it off")]
    BrokenOff { what: &'static str },
}

impl From<Unserved> for io::Error {
    fn from(unserved: Unserved) -> io::Error {
        let kind = match unserved {
            Unserved::Full { .. } | Unserved::NoThread { .. } => io::ErrorKind::WouldBlock,
            Unserved::Late { .. } => io::ErrorKind::TimedOut,
            Unserved::BrokenOff { .. } => io::ErrorKind::Other,
        };
        io::Error::new(kind, unserved)
    }
}

/// What becomes of work while there is not one thread for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithoutThread {
    /// Done by whoever asks: it never takes long.
    Inline,
    Refuse,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Of its threads.
    pub(crate) name: &'static str,
    /// What it does, for people.
    pub(crate) what: &'static str,
    pub(crate) threads: usize,
    pub(crate) queue: usize,
    pub(crate) limit: Duration,
    pub(crate) stack: usize,
    pub(crate) without_thread: WithoutThread,
}

/// Threads for one kind of work.
#[derive(Debug)]
pub struct Pool {
    settings: Settings,
    inside: Mutex<Inside>,
    added: Condvar,
}

struct Inside {
    threads: usize,
    queue: VecDeque<Box<dyn Work>>,
}

impl std::fmt::Debug for Inside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (threads, queued) = (self.threads, self.queue.len());
        f.debug_struct("Inside").field("threads", &threads).field("queued", &queued).finish()
    }
}

trait Work: Send {
    fn run(self: Box<Self>);

    /// Nobody waits for it any more.
    fn is_abandoned(&self) -> bool;
}

/// Work that nobody waits for.
struct Detached<W>(W);

impl<W: FnOnce() + Send> Work for Detached<W> {
    fn run(self: Box<Self>) {
        (self.0)();
    }

    fn is_abandoned(&self) -> bool {
        false
    }
}

struct Question<W, T> {
    work: W,
    answer: oneshot::Sender<T>,
}

impl<T: Send, W: FnOnce() -> T + Send> Work for Question<W, T> {
    fn run(self: Box<Self>) {
        // Whoever asked may have left meanwhile.
        let _ = self.answer.send((self.work)());
    }

    fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }
}

impl Pool {
    pub(crate) const fn new(settings: Settings) -> Pool {
        let inside = Mutex::new(Inside { threads: 0, queue: VecDeque::new() });
        Pool { settings, inside, added: Condvar::new() }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.settings.name
    }

    /// Gets its threads; whether it has them all.
    pub(crate) fn start(&'static self) -> bool {
        self.fill(&mut self.lock())
    }

    /// Does it outside the loop.
    ///
    /// # Errors
    /// It is not done, or not known to be done in time.
    pub async fn run<T: Send + 'static>(
        &'static self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unserved> {
        self.ask(work).await
    }

    /// As [`Pool::run`], but in line from now on, and not only once somebody waits for the answer:
    /// a pool of one thread does what it is asked in this order.
    pub fn ask<T: Send + 'static>(
        &'static self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, Unserved>> + Send + 'static {
        let Settings { what, limit, .. } = self.settings;
        let (answer, answered) = oneshot::channel();
        let added = self.add(Box::new(Question { work, answer }));
        async move {
            added?;
            match timeout(limit, answered).await {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(_)) => Err(Unserved::BrokenOff { what }),
                Err(_) => Err(Unserved::Late { what, limit }),
            }
        }
    }

    /// Does it outside the loop, however long that takes; nobody waits for it.
    ///
    /// # Errors
    /// It will not be done.
    pub fn begin(&'static self, work: impl FnOnce() + Send + 'static) -> Result<(), Unserved> {
        self.add(Box::new(Detached(work)))
    }

    fn add(&'static self, work: Box<dyn Work>) -> Result<(), Unserved> {
        let Settings { what, queue, without_thread, .. } = self.settings;
        let mut inside = self.lock();
        self.fill(&mut inside);
        match (inside.threads, without_thread) {
            (0, WithoutThread::Refuse) => return Err(Unserved::NoThread { what }),
            (0, WithoutThread::Inline) => {
                drop(inside);
                work.run();
                return Ok(());
            }
            (1.., _) => {}
        }
        if inside.queue.len() >= queue {
            inside.queue.retain(|work| !work.is_abandoned());
        }
        if inside.queue.len() >= queue {
            return Err(Unserved::Full { what });
        }
        inside.queue.push_back(work);
        self.added.notify_one();
        Ok(())
    }

    /// With [`own_thread`] the only place where this process gets a thread: one that cannot be had is no reason to end.
    fn fill(&'static self, inside: &mut Inside) -> bool {
        let Settings { name, threads, stack, .. } = self.settings;
        while inside.threads < threads {
            let builder = thread::Builder::new().name(name.to_owned()).stack_size(stack);
            if builder.spawn(|| self.serve()).is_err() {
                return false;
            }
            inside.threads += 1;
        }
        true
    }

    fn serve(&self) {
        latency::give_way();
        loop {
            let work = self.next();
            // A broken work ends with its question, which is told; the thread is needed.
            let _ = catch_unwind(AssertUnwindSafe(|| work.run()));
        }
    }

    fn next(&self) -> Box<dyn Work> {
        let mut inside = self.lock();
        loop {
            match inside.queue.pop_front() {
                Some(work) if work.is_abandoned() => {}
                Some(work) => return work,
                None => {
                    inside = self.added.wait(inside).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread for one work that goes on until it ends by itself, from the start of whoever needs it.
///
/// # Errors
/// There is no thread, and the work is not begun.
pub fn own_thread(
    name: &str,
    stack: usize,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).stack_size(stack).spawn(work).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const TEST: Settings = Settings {
        name: "test",
        what: "test",
        threads: 1,
        queue: 2,
        limit: Duration::from_millis(50),
        stack: 64 << 10,
        without_thread: WithoutThread::Refuse,
    };

    #[tokio::test]
    async fn one_that_hangs_delays_its_own_kind_only_and_everybody_hears_in_time() {
        static STUCK: Pool = Pool::new(TEST);
        static OTHER: Pool = Pool::new(TEST);
        let (release, held) = mpsc::channel::<()>();
        let hanging = STUCK.run(move || held.recv());
        let late = Unserved::Late { what: "test", limit: TEST.limit };
        assert_eq!(hanging.await.map(drop), Err(late));
        let (one, two, three) = tokio::join!(STUCK.run(|| 1), STUCK.run(|| 2), STUCK.run(|| 3));
        assert_eq!((one, two), (Err(late), Err(late)));
        assert_eq!(three, Err(Unserved::Full { what: "test" }));
        // Those who left make room.
        let waiting = tokio::spawn(STUCK.run(|| 4));
        assert_eq!(OTHER.run(|| 5).await, Ok(5));
        drop(release);
        assert_eq!(waiting.await.expect("it ends"), Ok(4));
    }

    #[tokio::test]
    async fn a_thread_that_cannot_be_had_is_told_or_done_without() {
        // No machine has room for that.
        const NONE: Settings = Settings { stack: usize::MAX >> 2, ..TEST };
        static REFUSING: Pool = Pool::new(NONE);
        static INLINE: Pool = Pool::new(Settings { without_thread: WithoutThread::Inline, ..NONE });
        assert!(!REFUSING.start());
        assert_eq!(REFUSING.run(|| 1).await, Err(Unserved::NoThread { what: "test" }));
        assert_eq!(REFUSING.begin(|| ()), Err(Unserved::NoThread { what: "test" }));
        assert_eq!(INLINE.run(|| thread::current().id()).await, Ok(thread::current().id()));
    }

    #[tokio::test]
    async fn a_thread_outlives_what_breaks_in_it() {
        static POOL: Pool = Pool::new(Settings { limit: Duration::from_secs(20), ..TEST });
        let broken = POOL.run(|| panic!("on purpose"));
        assert_eq!(broken.await.map(drop), Err(Unserved::BrokenOff { what: "test" }));
        assert_eq!(POOL.run(|| 1).await, Ok(1));
    }
}
