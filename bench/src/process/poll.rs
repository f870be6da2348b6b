//! Execs and exits found by looking through /proc again and again, where the kernel tells nothing.
//! Coarse (a millisecond or more) and it costs the watched some of the processor.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use rustix::process::Pid;

use super::{Event, Instant, tree};

const PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub(crate) struct Poll {
    known: HashMap<Pid, String>,
    found: VecDeque<Event>,
}

impl Poll {
    pub(crate) fn next(&mut self, timeout: Duration) -> Option<Event> {
        let start = Instant::now();
        loop {
            if let Some(event) = self.found.pop_front() {
                return Some(event);
            }
            self.look();
            if self.found.is_empty() {
                if Instant::now().seconds_since(start) > timeout.as_secs_f64() {
                    return None;
                }
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn look(&mut self) {
        tree::reap();
        let mut seen = HashMap::new();
        for pid in tree::pids() {
            let Some(name) = tree::name(pid) else { continue };
            if self.known.get(&pid) != Some(&name) {
                self.found.push_back(Event::Exec(pid, Instant::now()));
            }
            seen.insert(pid, name);
        }
        let gone = self.known.keys().filter(|pid| !seen.contains_key(pid));
        self.found.extend(gone.map(|pid| Event::Exit(*pid, Instant::now())));
        self.known = seen;
    }
}
