//! An input that takes too long ends the process: a hang cannot be caught from within.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Far beyond what any input may take, even where many share a processor.
const LONGEST: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(crate) struct Watch {
    now: Arc<Mutex<Option<Running>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Running {
    since: Instant,
    number: u64,
    input: Vec<u8>,
}

fn lock(now: &Mutex<Option<Running>>) -> MutexGuard<'_, Option<Running>> {
    now.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    pub(crate) fn start(target: &'static str, seed: u64) -> Watch {
        let now: Arc<Mutex<Option<Running>>> = Arc::default();
        let over = Arc::new(AtomicBool::new(false));
        let (watched, ends) = (now.clone(), over.clone());
        let thread = thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                thread::park_timeout(LOOK);
                if let Some(running) = &*lock(&watched)
                    && running.since.elapsed() > LONGEST
                {
                    let file = keep(target, seed, running.number, &running.input);
                    eprintln!("{target}: an input takes too long: {}", file.display());
                    std::process::abort();
                }
            }
        });
        Watch { now, over, thread: Some(thread) }
    }

    pub(crate) fn begin(&self, number: u64, input: &[u8]) {
        *lock(&self.now) = Some(Running { since: Instant::now(), number, input: input.to_vec() });
    }

    pub(crate) fn end(&self) {
        *lock(&self.now) = None;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Puts an input aside for `--input`; where it is.
pub(crate) fn keep(target: &str, seed: u64, number: u64, input: &[u8]) -> PathBuf {
    let file = std::env::temp_dir().join(format!("mainstay-fuzz-{target}-{seed}-{number}"));
    if let Err(error) = std::fs::write(&file, input) {
        eprintln!("cannot keep the input: {error}");
    }
    file
}
