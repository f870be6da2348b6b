//! The events of a node, as `mainstay events -f --json` prints them.

use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::{Duration, Instant},
};

#[derive(Debug)]
pub struct Events {
    child: Child,
    lines: Receiver<Value>,
    seen: Vec<Value>,
}

const PATIENCE: Duration = Duration::from_secs(30);

impl Events {
    pub(crate) fn follow(mut command: Command) -> Events {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary can be started");
        let stdout = child.stdout.take().expect("it was piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let event =
                    serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
                if sender.send(event).is_err() {
                    break;
                }
            }
        });
        Events { child, lines, seen: Vec::new() }
    }

    /// Waits for an event; those before it are kept in [`Events::seen`].
    pub fn wait(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(event) => {
                    self.seen.push(event.clone());
                    if wanted(&event) {
                        return event;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no event came: {what}; seen: {:#?}", self.seen)
                }
                Err(RecvTimeoutError::Disconnected) => panic!("the events ended before: {what}"),
            }
        }
    }

    /// Waits for an event of a job.
    pub fn wait_for(&mut self, source: &str, event: &str) -> Value {
        self.wait(&format!("{event} of {source}"), |seen| {
            seen["source"] == source && seen["event"] == event
        })
    }

    /// Waits for events of jobs that have nothing to do with each other, in whichever order.
    pub fn wait_for_all(&mut self, wanted: &[(&str, &str)]) {
        let mut missing = wanted.to_vec();
        while !missing.is_empty() {
            let is =
                |seen: &Value, it: &(&str, &str)| seen["source"] == it.0 && seen["event"] == it.1;
            let came =
                self.wait(&format!("{missing:?}"), |seen| missing.iter().any(|it| is(seen, it)));
            missing.retain(|it| !is(&came, it));
        }
    }

    /// Everything up to the end of the stream.
    pub fn to_end(&mut self) -> &[Value] {
        while let Ok(event) = self.lines.recv_timeout(PATIENCE) {
            self.seen.push(event);
        }
        &self.seen
    }

    #[must_use]
    pub fn seen(&self) -> &[Value] {
        &self.seen
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
