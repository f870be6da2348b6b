//! Work that may hang in the kernel and must not hold up the end of this process.
//!
//! A thread that waits for a frozen disk cannot be killed, and a process is not gone before the
//! last of its threads is: whoever waits for us would wait for that disk. So such work is done by
//! a process that shares our memory and our descriptors, and not our end. The thread that asks
//! for it sleeps meanwhile in a way that can be killed, as in vfork(2); to the work it looks as if
//! that thread did it.
//!
//! ```text
//!  thread ──clone, sleeps (killable)────────────► goes on with the answer
//!               └─► process of its own: work, may hang ─┘
//! ```

use std::{
    ffi::{c_int, c_void},
    process::abort,
    ptr,
    sync::atomic::{AtomicI32, Ordering},
};

const STACK: usize = 256 << 10;

/// A place to work apart: one for each thread that does.
#[derive(Debug)]
pub struct Apart {
    stack: Vec<u128>,
}

impl Default for Apart {
    fn default() -> Apart {
        Apart::new()
    }
}

struct Call<Work, Answer> {
    work: Option<Work>,
    answer: Option<Answer>,
    parent: libc::pid_t,
}

impl Apart {
    #[must_use]
    pub fn new() -> Apart {
        Apart { stack: vec![0; STACK / size_of::<u128>()] }
    }

    /// Does it, and gives its answer. Where no process is to be had the thread does it itself.
    pub fn run<Answer, Work: FnOnce() -> Answer>(&mut self, work: Work) -> Answer {
        // SAFETY: no memory is involved.
        let parent = unsafe { libc::getpid() };
        let mut call = Call { work: Some(work), answer: None, parent };
        let top = self.stack.as_mut_ptr_range().end;
        // Without a signal at its end: whoever reaps our children does not see it.
        let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_FS | libc::CLONE_VFORK;
        // SAFETY: the child has a stack of its own, which nobody else uses: `self` is borrowed until
        // it has ended. It shares our memory, and with it the thread-local data of this thread, which
        // does not go on before the child has ended (CLONE_VFORK). `call` outlives it.
        let pid = unsafe {
            libc::clone(begin::<Work, Answer>, top.cast(), flags, (&raw mut call).cast())
        };
        if pid < 0 {
            let work = call.work.take().expect("it has not begun");
            return work();
        }
        // SAFETY: asks for no status; it has ended already.
        while unsafe { libc::waitpid(pid, ptr::null_mut(), libc::__WALL) } < 0
            && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
        {}
        // It was killed in the midst of its work, with what it was changing half changed.
        call.answer.unwrap_or_else(|| abort())
    }
}

extern "C" fn begin<Work: FnOnce() -> Answer, Answer>(call: *mut c_void) -> c_int {
    // SAFETY: what `run` has given us; it looks at it again when we have ended.
    let call = unsafe { &mut *call.cast::<Call<Work, Answer>>() };
    // SAFETY: no memory is involved.
    let (own, parent) = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        (libc::getpid(), libc::getppid())
    };
    if parent == call.parent
        && let Some(work) = call.work.take()
    {
        let place = WORKERS.iter().find(|place| {
            place.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        });
        call.answer = Some(work());
        if let Some(place) = place {
            place.store(0, Ordering::Relaxed);
        }
    }
    0
}

/// As many as there are threads that work apart, and some.
static WORKERS: [AtomicI32; 8] = [const { AtomicI32::new(0) }; 8];

/// Whether a child of ours does our own work.
#[must_use]
pub fn is_worker(pid: u32) -> bool {
    i32::try_from(pid)
        .is_ok_and(|pid| WORKERS.iter().any(|place| place.load(Ordering::Relaxed) == pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeMap, thread};

    #[test]
    fn work_is_done_by_another_process_on_the_same_memory() {
        let worked = thread::spawn(|| {
            let mut apart = Apart::new();
            let mut numbers = BTreeMap::new();
            for number in 0..100 {
                let (pid, ours) = apart.run(|| {
                    numbers.insert(number, format!("number {number}"));
                    (std::process::id(), is_worker(std::process::id()))
                });
                assert!(pid != std::process::id() && ours && !is_worker(pid));
            }
            numbers
        });
        let numbers = worked.join().expect("it goes on");
        assert_eq!(numbers.len(), 100);
        assert_eq!(numbers[&99], "number 99");
        assert_eq!(crate::reap::peek(), None, "nobody else sees it end");
    }

    #[test]
    fn what_is_opened_apart_is_open_here() {
        let file = Apart::new().run(|| std::fs::File::open("/proc/version")).expect("opened");
        assert!(std::io::read_to_string(file).is_ok_and(|text| !text.is_empty()));
    }
}
