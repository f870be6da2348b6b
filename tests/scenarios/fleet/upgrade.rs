//! A fleet goes over to another version of Mainstay, node by node, while it has work to do.
//!
//! There is one version. The next one is a debug build under another name: it speaks the next
//! version of the protocol with those that do, this one with the others, and both have more in them
//! than this version knows (`crates/engine/src/next.rs`). A release build speaks one version under
//! any name, and all but the last of this holds as well.

use super::{TestFleet, home, homes, own_addresses, status};
use mainstay_tests::{Node, Scratch, binary, until};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

const WRITERS: [&str; 4] = ["w1", "w2", "w3", "w4"];

/// Writers on all nodes, one job that users start, stop and move, and one that they leave alone. A
/// second copy of any of them would find its lock taken: the nodes share a disk.
fn jobs(shared: &Path) -> String {
    let shared = shared.display();
    let job = |name: &str, app: &str| {
        let script = format!(
            "exec 9>>{shared}/{name}.lock; flock -n 9 || {{ echo {name} >>{shared}/twice; exit 1; }}; \
             i=0; while :; do i=$((i+1)); echo line $i; sleep 0.1; done"
        );
        format!(
            "[jobs.{name}]\nexec = [\"sh\", \"-c\", '{script}']\napp = \"{app}\"\n\
             place = {{ load = 20 }}\n"
        )
    };
    let writers: String = WRITERS.iter().map(|name| job(name, "writers")).collect();
    format!(
        "[apps.writers]\nstrategy = \"less-loaded\"\non_failure = \"restart-process\"\n\
         [apps.asked]\n{writers}{}{}",
        job("busy", "asked"),
        job("quiet", "asked")
    )
}

/// A new agent may have to wait for a processor while other tests run: it is not to be given up.
fn launch(jobs: &str) -> TestFleet {
    let fleet =
        TestFleet::prepare(&own_addresses(3), "tick = \"10s\"", jobs, |_, setup| setup.launch());
    fleet.nodes.iter().for_each(Node::wait_until_ready);
    fleet
}

/// Where each writer runs, and as which process.
fn processes(fleet: &TestFleet) -> Vec<(String, usize, u64)> {
    let of = |(at, node): (usize, &Node)| {
        let status = node.status();
        let jobs = status["jobs"].as_array().cloned().unwrap_or_default();
        let found = jobs.iter().filter_map(|job| {
            let name = job["name"].as_str().filter(|it| WRITERS.contains(it))?;
            Some((name.to_owned(), at, job["pid"].as_u64()?))
        });
        found.collect::<Vec<_>>()
    };
    let mut all: Vec<_> = fleet.nodes.iter().enumerate().flat_map(of).collect();
    all.sort();
    all
}

/// What a node has said of the fleet that is a reason to worry.
fn worries(node: &Node) -> Vec<String> {
    let words = ["nodeLost", "nodeIsolated", "nodeRefused", "conflict"];
    let is_one = |line: &&str| words.iter().any(|word| line.contains(&format!("\"{word}\"")));
    node.must(&["events", "--json"]).lines().filter(is_one).map(str::to_owned).collect()
}

/// All three take part, and every writer has one home.
fn until_whole(fleet: &TestFleet) {
    fleet.until_in_operation();
    for node in &fleet.nodes {
        until("every writer has one home", || {
            let fleet = status(node);
            let is_writer =
                |job: &&Value| job["job"].as_str().is_some_and(|name| WRITERS.contains(&name));
            let homes = fleet["jobs"].as_array()?.iter().filter(is_writer).map(homes);
            homes.eq(WRITERS.map(|_| 1_usize)).then_some(())
        });
    }
}

/// Somebody asks two nodes for whatever users ask for, again and again.
fn ask(one: &Node, other: &Node, names: [&str; 2]) {
    one.must(&["stop", "busy"]);
    other.must(&["start", "busy"]);
    let there = until("busy has a home", || home(one, "busy"));
    let to = names.into_iter().find(|it| *it != there).expect("two nodes");
    one.must(&["app", "move", "busy", "--to", to]);
    assert_eq!(status(other)["nodes"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_fleet_is_upgraded_node_by_node_and_back_under_load() {
    let scratch = Scratch::new();
    let fleet = launch(&jobs(scratch.path()));
    let next: PathBuf = scratch.path().join("mainstay-next");
    fs::copy(binary(), &next).expect("a scratch directory");
    until_whole(&fleet);
    assert_eq!(status(&fleet.nodes[1])["master"], "n1");
    let before = processes(&fleet);
    assert_eq!(before.len(), WRITERS.len());
    let (upgraded, asked, over) =
        (AtomicUsize::new(2), AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let _over = OnDrop(&over);
            while !over.load(Ordering::Relaxed) {
                let at = upgraded.load(Ordering::Relaxed);
                let (one, other) = ((at + 1) % 3, (at + 2) % 3);
                let names = [one, other].map(|at| ["n1", "n2", "n3"][at]);
                ask(&fleet.nodes[one], &fleet.nodes[other], names);
                asked.fetch_add(1, Ordering::Relaxed);
            }
        });
        let _over = OnDrop(&over);
        for program in [next.as_path(), &binary()] {
            for (at, node) in fleet.nodes.iter().enumerate() {
                upgraded.store(at, Ordering::Relaxed);
                // What was asked of this one is over.
                let begun = asked.load(Ordering::Relaxed);
                until("the others are asked", || {
                    assert!(!over.load(Ordering::Relaxed), "a request was not done");
                    (asked.load(Ordering::Relaxed) > begun + 1).then_some(())
                });
                node.must(&["upgrade", &program.display().to_string()]);
                until_whole(&fleet);
                assert_eq!(processes(&fleet), before, "a job was touched");
                if (program, at) == (next.as_path(), 0) {
                    // The master is of the next version, and writes down what is wanted.
                    fleet.nodes[1].must(&["stop", "quiet"]);
                    fleet.nodes[1].must(&["start", "quiet"]);
                }
            }
        }
    });
    for node in &fleet.nodes {
        assert_eq!(worries(node), Vec::<String>::new());
        assert!(!node.stderr().contains("upgrade the older one"), "{}", node.stderr());
    }
    assert!(!scratch.path().join("twice").exists(), "a job ran twice");
    for (name, at, _) in &before {
        let lines = fleet.nodes[*at].log(name);
        let expected = (1..=lines.len()).map(|n| format!("line {n}"));
        assert!(!lines.is_empty() && expected.eq(lines), "{name} has lost a line");
    }
    if fleet.nodes[0].stderr().contains("plays the next version") {
        // Whoever does not know what the next version has added to a wish keeps it all the same.
        for node in &fleet.nodes[1..] {
            let kept = fs::read_to_string(node.state_dir().join("fleet")).expect("it was written");
            assert!(kept.contains(r#""later":{"colour":"red"}"#), "{kept}");
        }
    }
}

/// Whatever ends one thread ends the other.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
