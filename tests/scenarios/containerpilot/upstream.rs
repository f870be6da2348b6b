//! What ContainerPilot's own integration tests check, one test for each of them.

use super::{ContainerPilot, HEAD, own_pids, told};
use mainstay_tests::{Consul, is_alive, proc, signal, until};
use rustix::process::Signal;
use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
};

/// How its own files log.
const TEXT: &str = "logging: { level: 'DEBUG', format: 'text' },";

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).unwrap_or_default().lines().count()
}

/// A service of this name that is well.
fn service(name: &str) -> String {
    format!(
        "{{ name: '{name}', port: 8000, interfaces: 'static:127.0.0.1', exec: 'sleep 1000',
            health: {{ exec: 'true', interval: 1, ttl: 60 }} }}"
    )
}

#[test]
fn config_reload() {
    let file = |arg: &str| {
        format!("{{ {HEAD} {TEXT} jobs: [ {{ name: 'app', exec: ['sleep', '{arg}'] }} ] }}")
    };
    let pilot = ContainerPilot::start(&file("1000"));
    let first = pilot.node.running("app");
    pilot.write(&file("1001"));
    pilot.must(&["-reload"]);
    assert_ne!(pilot.node.running("app"), first);
    // As often as anybody likes: nothing locks up, and what has not changed is left alone.
    let second = pilot.node.running("app");
    for _ in 0..50 {
        pilot.must(&["-reload"]);
    }
    assert_eq!(pilot.node.running("app"), second);
    assert_eq!(pilot.must(&["-ping"]), "ok\n");
}

#[test]
fn coprocess() {
    let file = |arg: &str| {
        format!(
            "{{ {HEAD} {TEXT} jobs: [ {{ name: 'app', exec: 'sleep 1000' }},
               {{ name: 'coprocess', exec: ['sleep', '{arg}'], restarts: 1 }} ] }}"
        )
    };
    let pilot = ContainerPilot::start(&file("1001"));
    let next = |before: u32| {
        until("it is restarted", || pilot.node.pid("coprocess").filter(|pid| *pid != before))
    };
    let first = pilot.node.running("coprocess");
    signal(first, Signal::TERM);
    let second = next(first);
    // Its one restart is used up.
    signal(second, Signal::TERM);
    pilot.node.until_state("coprocess", "FATAL");
    // A reload that changes it starts it with what it is to do now, and a new number of restarts.
    pilot.write(&file("1002"));
    pilot.must(&["-reload"]);
    let third = pilot.node.running("coprocess");
    let line = fs::read(format!("/proc/{third}/cmdline")).expect("it runs");
    assert!(String::from_utf8_lossy(&line).contains("1002"), "{line:?}");
    signal(third, Signal::TERM);
    next(third);
}

#[test]
fn discovery() {
    let consul = Consul::new();
    let address = consul.address();
    let app = ContainerPilot::start(&format!(
        "{{ consul: '{address}', {HEAD} {TEXT} jobs: [
           {{ name: 'app', port: 8000, interfaces: 'static:127.0.0.1', exec: 'sleep 1000', tags: ['application'],
              when: {{ source: 'preStart', once: 'exitSuccess' }},
              health: {{ exec: 'true', interval: 1, ttl: 60 }} }},
           {{ name: 'preStart', exec: 'echo prepared' }} ] }}"
    ));
    let nginx = ContainerPilot::start(&format!(
        "{{ consul: '{address}', {HEAD} {TEXT} jobs: [ {},
           {{ name: 'onChange-app', exec: ['sh', '-c', 'echo \"$MAINSTAY_WATCH_APP\" > DIR/routes'],
              when: {{ source: 'watch.app', each: 'changed' }} }} ],
           watches: [ {{ name: 'app', interval: 1, tag: 'application' }} ] }}",
        service("nginx")
    ));
    for name in ["app", "nginx"] {
        until(&format!("{name} is there"), || (consul.passing(name).len() == 1).then_some(()));
    }
    app.node.until_logged("preStart", "prepared");
    until("there is a route to the app", || {
        let routes = fs::read_to_string(nginx.node.path().join("routes")).ok()?;
        (routes.contains("127.0.0.1") && routes.contains("8000")).then_some(())
    });
}

#[test]
fn envvars() {
    let consul = Consul::new();
    let pilot = ContainerPilot::start(&format!(
        "{{ consul: '{}', {HEAD} jobs: [ {},
           {{ name: 'testenvvar', exec: 'env', port: 8500, interfaces: 'static:127.0.0.1',
              health: {{ exec: 'true', interval: 10, ttl: 25 }},
              when: {{ source: 'testpid', once: 'healthy' }} }},
           {{ name: '/bin/to/test-Case--now.sh', exec: 'sleep 1000' }} ] }}",
        consul.address(),
        service("testpid")
    ));
    let pid = pilot.node.running("testpid");
    let env = pilot.node.until_logged("testenvvar", &format!("CONTAINERPILOT_TESTPID_PID={pid}"));
    assert!(env.contains(&"CONTAINERPILOT_TESTENVVAR_IP=127.0.0.1".to_owned()), "{env:?}");
    let pid = pilot.node.running("test-Case--now");
    let named = format!("CONTAINERPILOT_TEST_CASE_NOW_PID={pid}");
    assert!(env.contains(&named), "{named} {env:?}");
}

#[test]
fn logging() {
    let pilot = ContainerPilot::start(&format!(
        "{{ {HEAD} {TEXT} jobs: [
           {{ name: 'job1', exec: 'echo job1 exec' }},
           {{ name: 'job2', exec: 'echo job2 exec', logging: {{ raw: true }} }},
           {{ name: 'job3', exec: 'sleep 1000',
              health: {{ exec: 'echo job3 health', logging: {{ raw: true }}, interval: 1, ttl: 5 }} }},
           {{ name: 'job4', exec: 'sleep 1000', health: {{ exec: 'echo job4 health', interval: 1, ttl: 5 }} }} ] }}"
    ));
    for (wanted, begins) in [
        ("loaded config:", false),
        ("msg=\"job1 exec", false),
        ("job2 exec", true),
        ("job3 health", true),
        ("msg=\"job4 health", false),
    ] {
        let fits = |line: &str| match begins {
            true => line.starts_with(wanted),
            false => line.contains(wanted),
        };
        until(wanted, || pilot.node.stdout().lines().any(fits).then_some(()));
    }
}

#[test]
fn no_command() {
    // Nothing but the variable says which file.
    let text = format!("{{ {HEAD} jobs: [ {{ name: 'app', exec: 'sleep 1000' }} ] }}");
    let pilot = ContainerPilot::launch_with(&text, &[], "CONTAINERPILOT=FILE NAME");
    pilot.node.running("app");
    let said = format!("{}{}", pilot.node.stdout(), pilot.node.stderr());
    assert!(!said.contains("panic"), "{said}");
}

#[test]
fn reap_zombies() {
    let text = format!(
        "{{ {HEAD} jobs: [
           {{ name: 'zombies', exec: 'tail -f /dev/null',
              health: {{ exec: ['sh', '-c', 'sleep 0.1 & exec sleep 0.2'], interval: 1, ttl: 5 }} }},
           {{ name: 'slow-zombies', exec: ['sh', '-c', '(sleep 0.2 & sleep 0.2 &) & echo born; exec tail -f /dev/null'] }} ] }}"
    );
    let pilot = ContainerPilot::launch(&text, &own_pids());
    pilot.node.wait_until_ready();
    let keeper = pilot.node.keeper();
    pilot.node.until_logged("slow-zombies", "born");
    pilot.node.until_health("zombies", "healthy");
    until("no zombie is left", || {
        let children = proc::children(keeper);
        children.iter().all(|pid| is_alive(*pid)).then_some(())
    });
    assert!(!pilot.node.stdout().contains("no child processes"), "{}", pilot.node.stdout());
}

#[test]
fn reopen() {
    let pilot = ContainerPilot::start(&format!(
        "{{ {HEAD} logging: {{ output: 'DIR/containerpilot.log' }}, jobs: [
           {{ name: 'hello', exec: ['sh', '-c', 'while :; do echo hello world; sleep 0.05; done'] }} ] }}"
    ));
    let log = pilot.node.path().join("containerpilot.log");
    let moved = pilot.node.path().join("containerpilot.log.1");
    let says_hello =
        |path: &Path| fs::read_to_string(path).is_ok_and(|it| it.contains("hello world"));
    until("the log says hello", || says_hello(&log).then_some(()));
    fs::rename(&log, &moved).expect("our own file");
    let before = lines(&moved);
    until("what was moved goes on", || (lines(&moved) > before + 1).then_some(()));
    signal(pilot.node.keeper(), Signal::USR1);
    until("a new log says hello", || says_hello(&log).then_some(()));
}

#[test]
fn sighup() {
    let consul = Consul::new();
    let pilot = ContainerPilot::start(&format!(
        "{{ consul: '{}', {HEAD} {TEXT} jobs: [ {},
           {{ name: 'on-sighup', exec: \"echo 'on-sighup job fired on SIGHUP'\", when: {{ source: 'SIGHUP' }} }},
           {{ name: 'on-sigusr2', exec: \"echo 'on-sigusr2 job fired on SIGUSR2'\", when: {{ source: 'SIGUSR2' }} }} ] }}",
        consul.address(),
        service("app")
    ));
    until("app is there", || (consul.passing("app").len() == 1).then_some(()));
    for (sent, said) in [
        (Signal::HUP, "msg=\"'on-sighup job fired on SIGHUP'\" job=on-sighup"),
        (Signal::USR2, "msg=\"'on-sigusr2 job fired on SIGUSR2'\" job=on-sigusr2"),
    ] {
        signal(pilot.node.keeper(), sent);
        until(said, || pilot.node.stdout().contains(said).then_some(()));
    }
    assert_eq!(consul.passing("app").len(), 1);
}

#[test]
fn sigterm() {
    let consul = Consul::new();
    let mut pilot = ContainerPilot::start(&format!(
        "{{ consul: '{}', {HEAD} {TEXT} jobs: [ {},
           {{ name: 'preStop', exec: \"echo 'preStop fired on app stopping'\", when: {{ source: 'app', once: 'stopping' }} }},
           {{ name: 'postStop', exec: \"echo 'postStop fired on app stopped'\", when: {{ source: 'app', once: 'stopped' }} }} ] }}",
        consul.address(),
        service("app")
    ));
    until("app is there", || (consul.passing("app").len() == 1).then_some(()));
    signal(pilot.node.keeper(), Signal::TERM);
    assert_eq!(pilot.node.wait().code(), Some(0));
    assert!(consul.passing("app").is_empty());
    let stdout = pilot.node.stdout();
    for said in ["msg=\"'preStop fired on app stopping'", "msg=\"'postStop fired on app stopped'"] {
        assert!(stdout.contains(said), "{said}\n{stdout}");
    }
}

#[test]
fn tasks() {
    let task = |name: &str, seconds: &str, more: &str| {
        format!(
            "{{ name: '{name}', exec: ['sh', '-c', 'echo run >> DIR/{name}.txt; exec sleep {seconds}'], {more} }}"
        )
    };
    let pilot = ContainerPilot::start(&format!(
        "{{ {HEAD} {TEXT} jobs: [ {}, {}, {}, {} ] }}",
        task("task1", "0.1", "when: { interval: '300ms' }, restarts: '5'"),
        task("task2", "0.1", "when: { interval: '300ms' }, restarts: '5', timeout: '300ms'"),
        task("task3", "10", "when: { interval: '300ms' }, restarts: '5', timeout: '50ms'"),
        task("task4", "0", "when: { interval: '100ms' }"),
    ));
    let runs = |name: &str| lines(&pilot.node.path().join(format!("{name}.txt")));
    for (name, state, late) in
        [("task1", "EXITED", 0), ("task2", "EXITED", 0), ("task3", "FATAL", 6)]
    {
        pilot.node.until_state(name, state);
        assert_eq!(runs(name), 6, "{name}");
        let told = format!("{name}: run ");
        let is_late =
            |line: &&str| line.contains(&told) && line.contains("longer than its timeout");
        until(&format!("{name} was late {late} times"), || {
            (pilot.node.stdout().lines().filter(is_late).count() == late).then_some(())
        });
    }
    until("a task without a limit goes on", || (runs("task4") > 8).then_some(()));
}

/// What is answered at a port of the loopback.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nAccept: */*\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

#[test]
fn telemetry() {
    let consul = Consul::new();
    let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let port = free.expect("the loopback has ports").port();
    let mut pilot = ContainerPilot::start(&format!(
        "{{ consul: '{}', {HEAD} {TEXT} jobs: [ {},
           {{ name: 'sensor', exec: ['DIR/containerpilot', '-config', 'DIR/pilot.json5', '-putmetric',
              'containerpilot_app_some_counter=42'] }} ],
           watches: [ {{ name: 'otherapp', interval: 1 }} ],
           telemetry: {{ port: {port}, interfaces: 'static:127.0.0.1', metrics: [
             {{ namespace: 'containerpilot', subsystem: 'app', name: 'some_counter', help: 'help text', type: 'counter' }} ] }} }}",
        consul.address(),
        service("app")
    ));
    let metrics = until("the counter has counted", || {
        get(port, "/metrics").filter(|text| text.contains("\ncontainerpilot_app_some_counter 42"))
    });
    assert!(metrics.contains("# TYPE containerpilot_app_some_counter counter"), "{metrics}");
    for family in [
        "containerpilot_events{",
        "containerpilot_control_http_requests{",
        "containerpilot_watch_instances",
    ] {
        assert!(metrics.contains(family), "{family}\n{metrics}");
    }
    until("both services are healthy", || {
        let text = get(port, "/status")?;
        (text.matches("\"Status\":\"healthy\"").count() >= 2).then_some(())
    });
    until("telemetry is a service", || (consul.passing("containerpilot").len() == 1).then_some(()));
    signal(pilot.node.keeper(), Signal::TERM);
    assert_eq!(pilot.node.wait().code(), Some(0));
    assert!(consul.passing("containerpilot").is_empty());
}

#[test]
fn version() {
    let text = format!("{{ {HEAD} jobs: [ {{ name: 'app', exec: 'sleep 1000' }} ] }}");
    let pilot = ContainerPilot::start(&text);
    let output = pilot.ask(&["-version"]);
    assert!(output.status.success() && told(&output).contains("Version: "), "{}", told(&output));
}
