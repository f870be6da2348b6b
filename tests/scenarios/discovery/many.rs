//! Many of everything.

use super::{start, with_consul};
use mainstay_tests::{Consul, until};
use std::fmt::Write as _;

#[test]
fn five_hundred_jobs_are_announced_over_a_few_connections_and_withdrawn() {
    let consul = Consul::new();
    let mut config = String::new();
    for n in 0..500 {
        writeln!(
            config,
            "[jobs.j{n}]\nexec = [\"sleep\", \"1000\"]\n\
             advertise = {{ port = 80, service = \"many\", interfaces = \"static:127.0.0.1\", ttl = \"60s\", heartbeat = \"1s\" }}"
        )
        .expect("a string");
    }
    let node = start(&consul, &config);
    until("all are there", || (consul.passing("many").len() == 500).then_some(()));
    assert!(consul.connections() <= 40, "{} connections", consul.connections());
    node.must(&["shutdown"]);
    until("all are gone", || consul.passing("many").is_empty().then_some(()));
}

#[test]
fn two_hundred_rapid_reloads_end_in_what_the_last_one_says() {
    let consul = Consul::new();
    let config = |n: u32| {
        format!(
            "[jobs.web]\nexec = [\"sleep\", \"1000\"]\n\
             advertise = {{ port = {}, interfaces = \"static:127.0.0.1\", tags = [\"n{n}\"] }}\n\
             [watches.w{}]\nservice = \"web\"\n[jobs.still]\nexec = [\"sleep\", \"1000\"]",
            1000 + n,
            n % 3
        )
    };
    let node = start(&consul, &config(0));
    let pids = ["web", "still"].map(|job| node.running(job));
    for n in 1..=200 {
        node.configure(&with_consul(&consul, &config(n)));
        node.must(&["reload"]);
    }
    until("the last one holds", || {
        let service = consul.get("/v1/agent/service/web-here");
        (service["Port"] == 1200 && service["Tags"][0] == "n200").then_some(())
    });
    assert_eq!(["web", "still"].map(|job| node.running(job)), pids);
    assert_eq!(node.status()["watches"].as_array().map(Vec::len), Some(1));
    until("its watch is answered", || (super::watch(&node, "w2")["instances"] == 1).then_some(()));
}
