//! Clients that nobody wants: garbage, halves of frames, silence, too much of everything.

use super::Job;
use mainstay_tests::{Node, Random};
use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Connections that are kept open at a time.
const HELD: usize = 150;

#[derive(Debug)]
pub(super) struct Abuse {
    over: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Abuse {
    pub(super) fn start(node: &Node, jobs: &[Job], seed: u64) -> Abuse {
        let run_dir = node.run_dir();
        let mut sockets = vec![run_dir.join("keeper.sock"), run_dir.join("mainstay.sock")];
        let controls = jobs.iter().map(|job| run_dir.join("jobs").join(&job.name).join("control"));
        sockets.extend(controls.take(8));
        let over = Arc::new(AtomicBool::new(false));
        let flag = over.clone();
        let random = Random::new(!seed);
        let thread = thread::spawn(move || abuse(&sockets, random, &flag));
        Abuse { over, thread }
    }

    /// Ends it; how many connections there were.
    pub(super) fn stop(self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("abuse does not fail")
    }
}

fn abuse(sockets: &[PathBuf], mut random: Random, over: &AtomicBool) -> u64 {
    let mut held: Vec<UnixStream> = Vec::new();
    let mut count = 0;
    while !over.load(Ordering::Relaxed) {
        let socket = random.pick(sockets).clone();
        for _ in 0..*random.pick(&[1, 1, 1, 40]) {
            // Not there while a job is being restarted.
            let Ok(mut stream) = UnixStream::connect(&socket) else { continue };
            count += 1;
            let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
            let _ = stream.set_read_timeout(Some(Duration::from_millis(1)));
            let _ = stream.write_all(&nonsense(&mut random));
            match random.within(0..4) {
                0 => {}
                1 => drop(stream.shutdown(std::net::Shutdown::Write)),
                2 => drop(stream.read(&mut [0; 100])),
                _ => held.push(stream),
            }
        }
        if held.len() > HELD {
            held.drain(..HELD / 2);
        }
        // So much that it hurts, and not so much that nothing else gets the processor.
        thread::sleep(Duration::from_millis(random.within(1..20)));
    }
    count
}

/// What no server asked for. None of it is an order that would be obeyed.
fn nonsense(random: &mut Random) -> Vec<u8> {
    let frame = |length: u32, body: &[u8]| [&length.to_le_bytes(), body].concat();
    match random.within(0..12) {
        0 => Vec::new(),
        1 => random.bytes(100),
        2 => random.bytes(5000),
        3 => frame(u32::MAX, b"{"),
        4 => frame(100, br#"{"upgrade""#),
        5 => frame(7, br#""stop"#),
        6 => frame(15, br#"{"upgrade":[1]}"#),
        7 => b"GET /v1/status HTTP/1.1\r\nHost:".to_vec(),
        8 => b"POST /v1/shutdown HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{".to_vec(),
        9 => b"event: stop\ndata: {\n\n".to_vec(),
        10 => [&b"event: signal\ndata: "[..], &b"x".repeat(70_000)].concat(),
        _ => b"event: kill\ndata".to_vec(),
    }
}
