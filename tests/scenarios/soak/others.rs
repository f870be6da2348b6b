//! A real Consul in which others come, change and go all the time.

use mainstay_tests::{Consul, Node, until};
use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Between two changes: longer than the shortest time between two that are told.
const PAUSE: Duration = Duration::from_millis(500);
const OTHERS: u64 = 3;

#[derive(Debug)]
pub(super) struct Others {
    consul: Arc<Consul>,
    stir: Arc<Stir>,
    stirring: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Stir {
    changes: AtomicU64,
    over: AtomicBool,
}

impl Others {
    /// None where there is no consul.
    pub(super) fn start() -> Option<Others> {
        let path = env::var_os("PATH")?;
        if !env::split_paths(&path).any(|dir| dir.join("consul").is_file()) {
            println!("without discovery: there is no 'consul' in PATH (scripts/setup-consul)");
            return None;
        }
        let (consul, stir) = (Arc::new(Consul::new()), Arc::new(Stir::default()));
        let stirring = thread::spawn({
            let (consul, stir) = (consul.clone(), stir.clone());
            move || {
                while !stir.over.load(Ordering::Relaxed) {
                    change(&consul, stir.changes.fetch_add(1, Ordering::Relaxed));
                    thread::sleep(PAUSE);
                }
            }
        });
        Some(Others { consul, stir, stirring: Some(stirring) })
    }

    /// Where it is, a watch of the others with a job that follows it, and a job that is announced
    /// and withdrawn once a second.
    pub(super) fn config(&self) -> String {
        format!(
            r#"
            [discovery]
            engine = "consul"
            address = "{}"
            [watches.others]
            [jobs.follow]
            exec = ["true"]
            when = {{ source = "watch.others", each = "changed" }}
            [jobs.guest]
            exec = ["sleep", "0.5"]
            when = {{ interval = "1s" }}
            {ADVERTISE}
            "#,
            self.consul.address()
        )
    }

    /// So often the others were changed until now.
    pub(super) fn changes(&self) -> u64 {
        self.stir.changes.load(Ordering::Relaxed)
    }

    /// Connections that anybody holds open to it.
    pub(super) fn connections(&self) -> u64 {
        self.consul.connections() as u64
    }

    /// How many services that are called so, followed by a number, pass in the catalogue.
    pub(super) fn passing(&self, prefix: &str) -> usize {
        let checks = self.consul.get("/v1/health/state/passing");
        let checks = checks.as_array().expect("a list").iter();
        checks
            .filter_map(|check| check["ServiceName"].as_str()?.strip_prefix(prefix))
            .filter(|number| number.parse::<usize>().is_ok())
            .count()
    }

    /// Removes the others, and waits until the node has seen it.
    pub(super) fn deregister_all(&mut self, node: &Node) {
        self.stir.over.store(true, Ordering::Relaxed);
        if let Some(stirring) = self.stirring.take() {
            stirring.join().expect("consul has answered all the time");
        }
        for other in 0..OTHERS {
            // One that is not there cannot be removed.
            self.consul.register(&id(other), "others", 1, &[]);
            self.consul.deregister(&id(other));
        }
        until("the watch sees that nobody is left", || {
            (node.status()["watches"][0]["instances"] == 0).then_some(())
        });
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.stir.over.store(true, Ordering::Relaxed);
    }
}

/// How a job is announced.
pub(super) const ADVERTISE: &str =
    r#"advertise = { port = 80, interfaces = "static:127.0.0.1", heartbeat = "1s" }"#;

fn id(other: u64) -> String {
    format!("other{other}")
}

/// Somebody is there always: another tag, and now and then one that goes until it comes next.
fn change(consul: &Consul, number: u64) {
    let other = number % OTHERS;
    match other != 0 && number % 5 == 4 {
        true => consul.deregister(&id(other)),
        false => consul.register(&id(other), "others", 1, &[&format!("turn{number}")]),
    }
}
