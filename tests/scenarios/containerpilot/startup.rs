//! What is open, and who is asked, before the first job starts.

use super::{ContainerPilot, HEAD};
use mainstay_tests::{Node, Scratch, Setup, needs, until};
use std::net::TcpListener;

/// Ports that are free at the moment.
fn ports<const N: usize>() -> [u16; N] {
    let held = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("loopback has ports"));
    held.map(|listener| listener.local_addr().expect("bound").port())
}

/// A pattern for the line of a port that somebody listens at.
fn listened(port: u16) -> String {
    format!(" 0100007F:{port:04X} 00000000:0000 0A ")
}

fn launched(text: &str) -> Node {
    let scratch = Scratch::new();
    let text = text.replace("DIR", &scratch.path().display().to_string());
    Setup::config(text).launch_in(scratch)
}

#[test]
fn everything_that_listens_is_open_before_the_first_job_starts() {
    let [api, telemetry] = ports();
    let (api_line, telemetry_line) = (listened(api), listened(telemetry));
    // What a race would lose now and then it loses in one of these.
    for _ in 0..20 {
        let mut node = launched(&format!(
            r#"
            [node]
            exit = "all"
            [containerpilot]
            socket = "DIR/pilot.socket"
            [telemetry]
            listen = "127.0.0.1:{telemetry}"
            [api]
            listen = "127.0.0.1:{api}"
            insecure = true
            [jobs]
            socket = {{ exec = ["test", "-S", "DIR/pilot.socket"], restart = "never" }}
            telemetry = {{ exec = ["grep", "-q", "{telemetry_line}", "/proc/net/tcp"], restart = "never" }}
            api = {{ exec = ["grep", "-q", "{api_line}", "/proc/net/tcp"], restart = "never" }}
            "#
        ));
        assert_eq!(node.wait().code(), Some(0), "{}", node.stderr());
    }
}

#[test]
fn the_first_job_can_talk_to_the_control_socket() {
    for _ in 0..10 {
        let mut pilot = ContainerPilot::launch(
            &format!(
                "{{ {HEAD} jobs: [
                   {{ name: 'pre', exec: ['DIR/containerpilot', '-config', 'DIR/pilot.json5', '-putenv', 'A=b'] }},
                   {{ name: 'app', exec: ['sh', '-c', 'echo A is $A'], when: {{ source: 'pre', once: 'exitSuccess' }} }} ] }}"
            ),
            &[],
        );
        assert_eq!(pilot.node.wait().code(), Some(0), "{}", pilot.node.stderr());
        assert_eq!(pilot.node.log("app"), ["A is b"]);
    }
}

#[test]
fn an_address_that_is_taken_is_told_and_tried_again_and_holds_up_nothing() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
    let at = taken.local_addr().expect("bound");
    let node = launched(&format!("[telemetry]\nlisten = '{at}'\n[jobs.web]\nexec = 'sleep 1000'"));
    node.running("web");
    node.until_told(&format!("cannot open telemetry at {at}"));
    drop(taken);
    node.until_told(&format!("telemetry is open at {at}"));
}

#[test]
fn a_consul_that_is_a_job_of_the_file_starts_and_is_told_of_the_others() {
    needs("consul");
    let [http, server, serf] = ports();
    let pilot = ContainerPilot::start(&format!(
        "{{ consul: '127.0.0.1:{http}', {HEAD} jobs: [
           {{ name: 'consul', exec: ['consul', 'agent', '-dev', '-node', 'here', '-bind', '127.0.0.1',
                '-log-level', 'warn', '-dns-port', '-1', '-grpc-port', '-1', '-serf-wan-port', '-1',
                '-http-port', '{http}', '-server-port', '{server}', '-serf-lan-port', '{serf}'],
              health: {{ exec: 'consul info -http-addr=127.0.0.1:{http}', interval: 1, ttl: 5 }} }},
           {{ name: 'web', exec: 'sleep 1000', port: 8000, interfaces: 'static:127.0.0.1',
              health: {{ exec: 'true', interval: 1, ttl: 60 }},
              when: {{ source: 'consul', once: 'healthy' }} }} ] }}"
    ));
    pilot.node.running("consul");
    pilot.node.running("web");
    until("web is in the Consul of its own file", || {
        let at = format!("-http-addr=127.0.0.1:{http}");
        let listed =
            std::process::Command::new("consul").args(["catalog", "services", &at]).output();
        let listed = String::from_utf8_lossy(&listed.ok()?.stdout).into_owned();
        listed.lines().any(|line| line == "web").then_some(())
    });
}
