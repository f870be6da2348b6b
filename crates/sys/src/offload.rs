//! One thread for calls that may take long, whose answers are told by a descriptor.
//!
//! It exists from the start, so that a call needs no thread that might not be to be had. Calls
//! are made one after the other: one that hangs holds up those behind it, and nobody else.

use crate::apart::Apart;
use rustix::event::{EventfdFlags, eventfd};
use std::{
    fmt, io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Sender, channel},
    },
    thread,
    time::Duration,
};

/// Starts a thread for as long as there is something to do.
pub(crate) fn begin(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).stack_size(64 << 10).spawn(run).map(drop)
}

/// Does it in a thread of its own, if that ends in time; one that does not is left behind, and does
/// not hold up our end.
#[must_use]
pub fn within<Answer: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> Answer + Send + 'static,
) -> Option<Answer> {
    let (tell, told) = channel();
    let work = move || {
        // Nobody listens only when it is too late.
        let _ = tell.send(Apart::new().run(work));
    };
    match begin("within", work) {
        Ok(()) => told.recv_timeout(limit).ok(),
        Err(_) => None,
    }
}

type Work<Answer> = Box<dyn FnOnce() -> Option<Answer> + Send>;

/// A thread that does one thing after the other.
pub struct Offload<Answer> {
    work: Sender<Work<Answer>>,
    answers: Arc<Answers<Answer>>,
}

struct Answers<Answer> {
    waiting: Mutex<Vec<Answer>>,
    wake: OwnedFd,
}

impl<Answer> Answers<Answer> {
    fn lock(&self) -> MutexGuard<'_, Vec<Answer>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Answer> fmt::Debug for Offload<Answer> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offload").finish_non_exhaustive()
    }
}

impl<Answer: Send + 'static> Offload<Answer> {
    /// Starts its thread.
    ///
    /// # Errors
    /// When there is no thread or no descriptor to be had.
    pub fn start(name: &str) -> io::Result<Offload<Answer>> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let answers = Arc::new(Answers { waiting: Mutex::new(Vec::new()), wake });
        let (work, todo) = channel::<Work<Answer>>();
        let told = answers.clone();
        let run = move || {
            let mut apart = Apart::new();
            while let Ok(work) = todo.recv() {
                let Some(answer) = apart.run(work) else { continue };
                told.lock().push(answer);
                // Full would mean readable already.
                let _ = rustix::io::write(&told.wake, &1u64.to_ne_bytes());
            }
        };
        begin(name, run)?;
        Ok(Offload { work, answers })
    }

    /// Has it done after what was asked for before.
    pub fn ask(&self, work: impl FnOnce() -> Answer + Send + 'static) {
        self.send(move || Some(work()));
    }

    /// Has it done in the same way; nobody is told.
    pub fn begin(&self, work: impl FnOnce() + Send + 'static) {
        self.send(move || {
            work();
            None
        });
    }

    fn send(&self, work: impl FnOnce() -> Option<Answer> + Send + 'static) {
        // The thread ends with this value and not before.
        let _ = self.work.send(Box::new(work));
    }

    /// Readable when there are answers.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.answers.wake.as_fd()
    }

    /// The answers that have come.
    #[must_use]
    pub fn answers(&self) -> Vec<Answer> {
        let _ = rustix::io::read(&self.answers.wake, &mut [0u8; 8]);
        std::mem::take(&mut *self.answers.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    #[test]
    fn answers_come_in_order_and_are_told_by_the_descriptor() {
        let offload = Offload::start("test").expect("a thread");
        for number in 0..3 {
            offload.ask(move || number * 2);
            offload.begin(|| {});
        }
        let mut came = Vec::new();
        while came.len() < 3 {
            let mut fds = [PollFd::from_borrowed_fd(offload.fd(), PollFlags::IN)];
            poll(&mut fds, None).expect("readable in the end");
            came.extend(offload.answers());
        }
        assert_eq!(came, [0, 2, 4]);
    }
}
