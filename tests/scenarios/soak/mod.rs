//! A node that works for long: interval jobs that start, run and end all the time, checks that take
//! longer than their interval, checks that hang, checks that pass; jobs in a real Consul, a watch
//! of others that never rest, and somebody who reads the metrics. Memory, descriptors and connections
//! stay flat, every job has the runs that the clock owes it, the API answers at once, and nobody is
//! left unreaped.
//!
//! `scripts/soak --minutes 10`; the short form shows that the harness works and that nothing is
//! grossly wrong.

mod others;
mod runs;
mod samples;

use mainstay_tests::{Node, Setup, until};
use others::Others;
use runs::Runs;
use samples::Samples;
use std::{
    fmt::Write as _,
    io::{Read, Write as _},
    net::TcpListener,
    thread,
    time::{Duration, Instant},
};

/// The interval jobs start once a second each.
const INTERVAL: Duration = Duration::from_secs(1);
const JOBS: usize = 100;
const WEB: usize = 20;
/// Of those, so many are announced.
const ANNOUNCED: usize = 10;

/// What must hold, by how long is looked.
#[derive(Debug, Clone, Copy)]
struct Soak {
    length: Duration,
    /// Buffers, the last 10,000 events among them, fill before anything is compared.
    warm_up: Duration,
    /// How much the median of the last third may lie above that of the first.
    growth_kib: u64,
    /// So many of a hundred runs that the clock owes to a job take place.
    runs: u64,
    /// The longest time between two runs of one job.
    gap: Duration,
    /// The 99th percentile of `GET /v1/status` and of `/metrics`.
    answer: Duration,
    /// So many of a hundred changes of a watch start the job that follows it.
    followed: u64,
    /// So many announced jobs pass whenever it is looked.
    passing: usize,
}

/// A debug build on a machine where other tests run is held to little.
#[test]
fn a_busy_node_keeps_the_pace_and_leaves_nobody_unreaped() {
    soak(Soak {
        length: Duration::from_secs(18),
        warm_up: Duration::from_secs(8),
        growth_kib: 16 << 10,
        runs: 25,
        gap: Duration::from_secs(10),
        answer: Duration::from_secs(2),
        followed: 10,
        passing: 0,
    });
}

/// `scripts/soak`
#[test]
#[ignore = "takes minutes: run it with scripts/soak"]
fn the_long_form() {
    let minutes = std::env::var("MAINSTAY_SOAK_MINUTES").unwrap_or_else(|_| "10".to_owned());
    let minutes: u64 = minutes.parse().expect("a number of minutes");
    soak(Soak {
        length: Duration::from_secs(60 * minutes),
        warm_up: Duration::from_secs(60),
        growth_kib: 512,
        runs: 90,
        gap: Duration::from_secs(3),
        answer: Duration::from_millis(200),
        followed: 90,
        passing: ANNOUNCED,
    });
}

fn soak(soak: Soak) {
    let mut others = Others::start();
    let metrics = free_port();
    let node = Setup::config(config(web_server(), metrics, others.as_ref())).start();
    node.running("slow");
    if let Some(others) = &others {
        until("all are announced", || (others.passing("web") == ANNOUNCED).then_some(()));
    }
    thread::sleep(soak.warm_up.min(soak.length / 2));
    let runs = Runs::count(&node);
    let changes = |others: &Option<Others>| others.as_ref().map_or(0, Others::changes);
    let (begun, before, unchanged) = (Instant::now(), runs.each(), changes(&others));
    let samples = Samples::take(&node, metrics, others.as_ref(), soak.length);
    let (lasted, after, changed) = (begun.elapsed(), runs.each(), changes(&others) - unchanged);
    let had = |job: &str| after.get(job).unwrap_or(&0) - before.get(job).unwrap_or(&0);

    println!("{JOBS} interval jobs over {lasted:.0?}: {samples}");
    let owed = lasted.as_secs() / INTERVAL.as_secs();
    let ticks: Vec<u64> = (0..JOBS).map(|number| had(&format!("tick{number}"))).collect();
    let (fewest, most) = (ticks.iter().min().expect("jobs"), ticks.iter().max().expect("jobs"));
    let gap = runs.longest_gap("tick");
    println!("runs of each: {fewest} to {most}, owed {owed}; longest time between two {gap:.2?}");
    assert!(*fewest >= owed * soak.runs / 100, "a job had {fewest} runs in {lasted:?}");
    assert!(*most <= owed + 2, "a job had {most} runs in {lasted:?}");
    assert!(gap <= soak.gap, "a job did not run for {gap:?}");
    samples.check(soak);
    checks_are_as_they_should_be(&node);
    if let Some(others) = &mut others {
        let followed = had("follow");
        println!("a watch changed {changed} times, and the job that follows it ran {followed}");
        assert!(followed >= changed * soak.followed / 100, "{followed} of {changed} were told");
        until("all are announced", || (others.passing("web") == ANNOUNCED).then_some(()));
        others.deregister_all(&node);
    }
}

fn checks_are_as_they_should_be(node: &Node) {
    assert_eq!(node.job("web0")["health"], "healthy");
    assert_eq!(node.job("quick")["health"], "healthy");
    assert_ne!(node.job("hung")["health"], "healthy", "its check never ends by itself");
    for job in ["slow", "hung", "quick", "web0"] {
        let job = node.job(job);
        assert_eq!((&job["state"], &job["incarnation"]), (&"RUNNING".into(), &1.into()), "{job}");
    }
}

fn config(port: u16, metrics: u16, others: Option<&Others>) -> String {
    let mut text = format!(
        r#"
        [node]
        exit = "never"
        [log]
        forward = false
        [telemetry]
        listen = "127.0.0.1:{metrics}"
        # Every tick of its check finds the one before it still running.
        [jobs.slow]
        exec = ["sleep", "100000"]
        health = {{ exec = ["sleep", "30"], interval = "10s", timeout = "40s" }}
        # Every check is killed with what it has started.
        [jobs.hung]
        exec = ["sleep", "100000"]
        health = {{ exec = ["sh", "-c", "sleep 30 & wait"], interval = "10s", timeout = "9s" }}
        [jobs.quick]
        exec = ["sleep", "100000"]
        health = [
            {{ exec = ["sh", "-c", "echo fine"], interval = "1s", timeout = "10s" }},
            {{ tcp = "127.0.0.1:{port}", interval = "1s", timeout = "10s" }},
        ]
        "#
    );
    for number in 0..WEB {
        let url = format!("http://127.0.0.1:{port}/");
        let health = format!("{{ http = \"{url}\", interval = \"500ms\", timeout = \"5s\" }}");
        let exec = r#"["sleep", "100000"]"#;
        writeln!(text, "[jobs.web{number}]\nexec = {exec}\nhealth = {health}").expect("memory");
        if others.is_some() && number < ANNOUNCED {
            writeln!(text, "{}", others::ADVERTISE).expect("memory");
        }
    }
    for number in 0..JOBS {
        let exec = r#"["sh", "-c", "echo one run"]"#;
        let when = format!("{{ interval = \"{}s\" }}", INTERVAL.as_secs());
        writeln!(text, "[jobs.tick{number}]\nexec = {exec}\nwhen = {when}").expect("memory");
    }
    text + &others.map(Others::config).unwrap_or_default()
}

/// One that nobody has at the moment.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Answers whoever asks, until the test ends.
fn web_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
            let _ = stream.write_all(head.as_bytes());
        }
    });
    port
}
