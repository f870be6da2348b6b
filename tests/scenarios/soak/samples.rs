//! What is looked at once a second: memory, descriptors, connections, zombies, how soon the API and
//! the metrics answer, how many jobs pass in the catalogue.

use super::{Soak, others::Others};
use mainstay_tests::{Node, proc};
use std::{
    collections::HashSet,
    fmt, fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    thread,
    time::{Duration, Instant},
};

const PERIOD: Duration = Duration::from_secs(1);

/// One process over time.
#[derive(Debug, Default)]
struct ProcessSamples {
    /// Anonymous memory, in KiB: what it has allocated, without the pages of the binary.
    memory: Vec<u64>,
    descriptors: Vec<u64>,
    ticks: u64,
}

#[derive(Debug, Default)]
pub(super) struct Samples {
    keeper: ProcessSamples,
    agent: ProcessSamples,
    answers: Vec<Duration>,
    scrapes: Vec<Duration>,
    /// Without a catalogue both stay empty.
    connections: Vec<u64>,
    passing: Vec<usize>,
    /// Seen as zombies in two samples: one that ends just now is in one at most.
    zombies: HashSet<u32>,
    lasted: Duration,
}

impl Samples {
    pub(super) fn take(
        node: &Node,
        metrics: u16,
        others: Option<&Others>,
        length: Duration,
    ) -> Samples {
        let mut samples = Samples::default();
        let mut suspects = HashSet::new();
        let (keeper, agent) = (node.keeper(), node.agent());
        let ticks = [keeper, agent].map(proc::ticks);
        let begun = Instant::now();
        while begun.elapsed() < length {
            samples.keeper.look_at(keeper);
            samples.agent.look_at(agent);
            samples.answers.push(answer(node));
            samples.scrapes.push(scrape(metrics));
            samples.connections.extend(others.map(Others::connections));
            samples.passing.extend(others.map(|others| others.passing("web")));
            let now = zombies_of(keeper);
            samples.zombies.extend(now.intersection(&suspects));
            suspects = now;
            thread::sleep(PERIOD);
        }
        samples.lasted = begun.elapsed();
        assert_eq!(node.agent(), agent, "the agent has died");
        samples.keeper.ticks = proc::ticks(keeper) - ticks[0];
        samples.agent.ticks = proc::ticks(agent) - ticks[1];
        samples
    }

    pub(super) fn check(&self, soak: Soak) {
        for (who, samples) in [("keeper", &self.keeper), ("agent", &self.agent)] {
            let (first, last) = thirds(&samples.memory);
            assert!(last <= first + soak.growth_kib, "the {who} grew from {first} to {last} KiB");
            let (first, last) = thirds(&samples.descriptors);
            assert!(last <= first + 30, "the {who} had {first} descriptors, then {last}");
        }
        for (who, answers) in [("API", &self.answers), ("/metrics", &self.scrapes)] {
            let slow = percentile(answers, 99);
            assert!(slow <= soak.answer, "{who} took {slow:?}");
        }
        if !self.connections.is_empty() {
            let (first, last) = thirds(&self.connections);
            assert!(last <= first + 5, "{first} connections to the catalogue, then {last}");
            let fewest = *self.passing.iter().min().expect("samples");
            assert!(fewest >= soak.passing, "only {fewest} jobs passed in the catalogue");
        }
        assert_eq!(self.zombies, HashSet::new(), "nobody reaped them");
    }
}

impl ProcessSamples {
    fn look_at(&mut self, pid: u32) {
        let anonymous = proc::status(pid, "RssAnon");
        let kib = anonymous.trim_end_matches(" kB").trim().parse().expect("a number of kB");
        self.memory.push(kib);
        self.descriptors.push(proc::descriptors(pid).len() as u64);
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (who, samples) in [("keeper", &self.keeper), ("agent", &self.agent)] {
            let (first, last) = thirds(&samples.memory);
            let (opened, open) = thirds(&samples.descriptors);
            let seconds = samples.ticks as f64 / 100.0;
            let per_minute = seconds * 60.0 / self.lasted.as_secs_f64();
            write!(
                f,
                "\n  {who}: {first} KiB in the first third, {last} KiB in the last; \
                 {opened} then {open} descriptors; {per_minute:.2} CPU seconds a minute",
            )?;
        }
        for (who, answers) in [("API", &self.answers), ("/metrics", &self.scrapes)] {
            let [p50, p99, worst] = [50, 99, 100].map(|percent| percentile(answers, percent));
            write!(f, "\n  {who}: p50 {p50:.1?}, p99 {p99:.1?}, worst {worst:.1?}")?;
        }
        if !self.connections.is_empty() {
            let (first, last) = thirds(&self.connections);
            let fewest = self.passing.iter().min().expect("samples");
            write!(
                f,
                "\n  catalogue: {first} connections in the first third, {last} in the last; \
                 never fewer than {fewest} announced jobs pass"
            )?;
        }
        write!(f, "\n  {} zombies", self.zombies.len())
    }
}

/// The medians of the first and of the last third.
fn thirds(values: &[u64]) -> (u64, u64) {
    let third = (values.len() / 3).max(1);
    (percentile(&values[..third], 50), percentile(&values[values.len() - third..], 50))
}

fn percentile<T: Copy + Ord>(values: &[T], percent: usize) -> T {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[(sorted.len() - 1) * percent / 100]
}

fn zombies_of(keeper: u32) -> HashSet<u32> {
    let state = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(stat.rsplit(')').next()?.trim_start().starts_with('Z'))
    };
    proc::children(keeper).into_iter().filter(|pid| state(pid) == Some(true)).collect()
}

/// How long the API takes for all jobs.
fn answer(node: &Node) -> Duration {
    let begun = Instant::now();
    let mut stream = UnixStream::connect(node.run_dir().join("mainstay.sock")).expect("a socket");
    stream
        .write_all(b"GET /v1/status HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .expect("the agent listens");
    let mut text = Vec::new();
    stream.read_to_end(&mut text).expect("an answer");
    assert!(text.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&text));
    begun.elapsed()
}

/// How long the metrics of all jobs take.
fn scrape(port: u16) -> Duration {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("telemetry listens");
    let accept = "accept: application/openmetrics-text";
    write!(stream, "GET /metrics HTTP/1.1\r\nhost: x\r\n{accept}\r\n\r\n").expect("it reads");
    let mut text = Vec::new();
    stream.read_to_end(&mut text).expect("an answer");
    assert!(text.ends_with(b"# EOF\n"), "{}", String::from_utf8_lossy(&text));
    begun.elapsed()
}
