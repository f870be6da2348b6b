//! In the place of ContainerPilot 3: called by its name, with its file, its flags and its Consul.

mod logging;
mod startup;
mod upstream;

use mainstay_tests::{
    Command, Consul, Node, Scratch, Setup, binary, needs, needs_root, signal, until,
};
use rustix::process::Signal;
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

/// The binary under its other name, and a file for it.
struct ContainerPilot {
    node: Node,
    name: PathBuf,
    file: PathBuf,
}

fn named(dir: &Path) -> PathBuf {
    let name = dir.join("containerpilot");
    symlink(binary(), &name).expect("a scratch directory can be written");
    name
}

/// The file as it is in this directory: `DIR` stands for it.
fn written(dir: &Path, text: &str) -> PathBuf {
    let file = dir.join("pilot.json5");
    fs::write(&file, text.replace("DIR", &dir.display().to_string())).expect("a file");
    file
}

impl ContainerPilot {
    fn launch(text: &str, before: &[&str]) -> ContainerPilot {
        ContainerPilot::launch_with(text, before, "NAME -config=FILE these words mean nothing")
    }

    /// `line` is what a shell is given: `NAME` and `FILE` stand for the two.
    fn launch_with(text: &str, before: &[&str], line: &str) -> ContainerPilot {
        let scratch = Scratch::new();
        let (name, file) = (named(scratch.path()), written(scratch.path(), text));
        let line = line.replace("NAME", &name.display().to_string());
        let line = format!("exec env {}", line.replace("FILE", &file.display().to_string()));
        // Whatever a node would have been started with is not what this one is started with.
        let mut setup = Setup::import("containerpilot", &file)
            .env("GREETING", "hello=there=you")
            .under(&["sh", "-c", &line]);
        if !before.is_empty() {
            setup = setup.under(before);
        }
        ContainerPilot { node: setup.launch_in(scratch), name, file }
    }

    fn start(text: &str) -> ContainerPilot {
        let pilot = ContainerPilot::launch(text, &[]);
        pilot.node.wait_until_ready();
        until("it answers", || pilot.ask(&["-ping"]).status.success().then_some(()));
        pilot
    }

    fn write(&self, text: &str) {
        written(self.node.path(), text);
    }

    fn ask(&self, flags: &[&str]) -> Output {
        let mut command = Command::new(&self.name);
        command.args(flags).env("CONTAINERPILOT", &self.file).env("NO_COLOR", "1");
        command.stdin(Stdio::null()).output().expect("the binary can be started")
    }

    fn must(&self, flags: &[&str]) -> String {
        let output = self.ask(flags);
        assert!(output.status.success(), "{flags:?}: {}", told(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn told(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// A pid namespace with a /proc of its own.
fn own_pids() -> [&'static str; 5] {
    needs_root();
    needs("unshare");
    ["unshare", "--pid", "--mount-proc", "--fork", "--kill-child"]
}

const HEAD: &str = "control: { socket: 'DIR/pilot.socket' },";

#[test]
fn flags_that_need_no_node_do_their_work() {
    let scratch = Scratch::new();
    let name = named(scratch.path());
    let file = written(scratch.path(), "{ jobs: [ // {{ .WHO | default \"nobody\" }}\n");
    let run = |flags: &[&str]| {
        let mut command = Command::new(&name);
        command.args(flags).env("WHO", "a=b=c").env_remove("CONTAINERPILOT");
        command.output().expect("the binary can be started")
    };
    let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let file = file.display().to_string();
    let version = text(&run(&["-version", "-reload"]));
    let lines: Vec<&str> = version.lines().collect();
    assert!(lines[0].starts_with("Version: ") && lines[1].starts_with("GitHash: "), "{version}");
    // Rendering asks nothing of what is rendered.
    assert_eq!(text(&run(&["-config", &file, "-template"])), "{ jobs: [ // a=b=c\n");
    assert_eq!(text(&run(&["--template", "--config", &file, "-out=-"])), "{ jobs: [ // a=b=c\n");
    let out = scratch.path().join("out");
    let to = out.display().to_string();
    assert_eq!(run(&["-config", &file, "-template", "-out", &to]).status.code(), Some(0));
    assert_eq!(fs::read_to_string(&out).expect("written"), "{ jobs: [ // a=b=c\n");
    for (flags, code, words) in [
        (vec![], 2, "-config flag is required"),
        (vec!["-nonsense"], 2, "-nonsense"),
        (vec!["-config", &file, "-putmetric", "x"], 2, "NAME=VALUE"),
        (vec!["-config", "/nowhere", "-template"], 78, "/nowhere"),
        (vec!["-config", "/nowhere", "-ping"], 78, "/nowhere"),
        (vec!["-config", &file, "-ping"], 4, "/var/run/containerpilot.socket"),
    ] {
        let output = run(&flags);
        assert_eq!(output.status.code(), Some(code), "{flags:?}: {}", told(&output));
        assert!(told(&output).contains(words), "{flags:?}: {}", told(&output));
    }
}

#[test]
fn a_file_runs_and_a_reload_touches_only_what_has_changed() {
    let file = |more: &str| {
        format!(
            "{{ {HEAD} jobs: [
               {{ name: 'web', exec: ['sh', '-c', 'echo {{{{ .GREETING }}}}; exec sleep 1000'] }},
               {{ name: 'tick', exec: ['sh', '-c', 'echo tick {more} $FOO'], when: {{ interval: '100ms' }} }},
             ] }}"
        )
    };
    let pilot = ContainerPilot::start(&file("one"));
    let web = pilot.node.running("web");
    pilot.node.until_logged("web", "hello=there=you");
    pilot.node.until_logged("tick", "tick one");
    assert_eq!(pilot.must(&["-ping"]), "ok\n");
    pilot.must(&["-putenv", "FOO=bar=1", "-putenv", "WORD=two"]);
    pilot.node.until_logged("tick", "tick one bar=1");
    // What was put is seen by the template as well.
    pilot.write(&file("{{ .WORD }}"));
    pilot.must(&["-reload"]);
    pilot.node.until_logged("tick", "tick two bar=1");
    pilot.must(&["-putenv", "FOO"]);
    pilot.node.until_logged("tick", "tick two");
    assert_eq!(pilot.node.running("web"), web);
    // A broken file changes nothing, and breaks nothing that is asked.
    pilot.write(&format!("{{ {HEAD} jobs: [ }}"));
    let output = pilot.ask(&["-reload"]);
    assert_eq!(output.status.code(), Some(78), "{}", told(&output));
    assert!(told(&output).contains("pilot.json5:1:"), "{}", told(&output));
    assert_eq!(pilot.must(&["-ping"]), "ok\n");
    assert_eq!(pilot.node.running("web"), web);
}

#[test]
fn hooks_run_before_and_after_the_end_and_signals_and_maintenance_start_jobs() {
    let mut pilot = ContainerPilot::start(&format!(
        "{{ {HEAD} jobs: [
           {{ name: 'web', exec: ['sh', '-c', 'trap \"echo web ends >> DIR/story; exit 0\" TERM; echo up; while :; do sleep 0.05; done'] }},
           {{ name: 'pre-stop', exec: ['sh', '-c', 'echo before >> DIR/story'], when: {{ source: 'web', once: 'stopping' }} }},
           {{ name: 'post-stop', exec: ['sh', '-c', 'echo after >> DIR/story'], when: {{ source: 'web', once: 'stopped' }} }},
           {{ name: 'on-hup', exec: 'echo hup', when: {{ source: 'SIGHUP' }} }},
           {{ name: 'park', exec: 'echo parked', when: {{ each: 'enterMaintenance' }} }},
           {{ name: 'go', exec: 'echo went', when: {{ source: 'global', each: 'exitMaintenance' }} }},
         ] }}"
    ));
    pilot.node.until_logged("web", "up");
    signal(pilot.node.keeper(), Signal::HUP);
    pilot.node.until_logged("on-hup", "hup");
    pilot.must(&["-maintenance", "enable"]);
    pilot.node.until_logged("park", "parked");
    pilot.must(&["-maintenance=disable"]);
    pilot.node.until_logged("go", "went");
    signal(pilot.node.keeper(), Signal::TERM);
    assert_eq!(pilot.node.wait().code(), Some(0));
    let story = fs::read_to_string(pilot.node.path().join("story")).expect("written");
    assert_eq!(story, "before\nweb ends\nafter\n");
}

#[test]
fn services_are_in_consul_while_they_are_well_and_gone_when_they_stop() {
    let consul = Consul::new();
    let text = format!(
        "{{ consul: '{}', {HEAD}
            jobs: [
              {{ name: 'web', exec: 'sleep 1000', port: 8000, interfaces: ['static:127.0.0.1'], tags: ['a'],
                 health: {{ exec: 'test ! -e DIR/ill', interval: 1, ttl: 60 }} }},
              {{ name: 'on-db', exec: 'echo changed', when: {{ source: 'watch.db', each: 'changed' }} }},
            ],
            watches: [ {{ name: 'db', interval: 1 }} ] }}",
        consul.address()
    );
    let mut pilot = ContainerPilot::start(&text);
    let id = until("web is passing", || consul.passing("web").pop());
    assert!(id.starts_with("web-"), "{id}");
    assert_eq!(consul.get("/v1/agent/services")[&id]["Tags"][0], "a");
    consul.register("db-1", "db", 5432, &[]);
    pilot.node.until_logged("on-db", "changed");
    // Long before its ttl is over.
    fs::write(pilot.node.path().join("ill"), "").expect("a file");
    until("web is critical", || {
        consul.standing("web", &id).filter(|(standing, _)| standing == "critical")
    });
    fs::remove_file(pilot.node.path().join("ill")).expect("our own file");
    until("web is passing again", || consul.passing("web").pop());
    pilot.must(&["-maintenance", "enable"]);
    until("web is gone", || consul.passing("web").is_empty().then_some(()));
    pilot.must(&["-maintenance", "disable"]);
    until("web has come back", || consul.passing("web").pop());
    signal(pilot.node.keeper(), Signal::TERM);
    assert_eq!(pilot.node.wait().code(), Some(0));
    assert!(consul.get("/v1/agent/services").get(&id).is_none());
}

#[test]
fn a_directory_is_one_configuration_and_why_names_the_file() {
    let scratch = Scratch::new();
    let name = named(scratch.path());
    let dir = scratch.path().join("pilot.d");
    fs::create_dir(&dir).expect("a scratch directory can be written");
    let put = |file: &str, text: &str| {
        let text = text.replace("DIR", &scratch.path().display().to_string());
        fs::write(dir.join(file), text).expect("a file");
    };
    put("10-web.json5", &format!("{{ {HEAD} jobs: [\n {{ name: 'web', exec: 'sleep 1000' }} ] }}"));
    put(
        "20-after.json5",
        "{ jobs: [\n\n { name: 'after', exec: 'true', when: { source: 'web', once: 'exitSuccess' } } ] }",
    );
    let line = format!("exec {} -config {}", name.display(), dir.display());
    let setup = Setup::import("containerpilot", &dir).under(&["sh", "-c", &line]);
    let node = setup.launch_in(scratch);
    node.wait_until_ready();
    node.running("web");
    let why = node.must(&["why", "after"]);
    assert!(why.contains("20-after.json5:3"), "{why}");
    let output = Command::new(&name).args(["-config"]).arg(&dir).arg("-ping").output();
    let output = output.expect("the binary can be started");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n", "{}", told(&output));
}

#[test]
fn a_consul_that_was_never_there_does_not_work_again_at_the_end() {
    let mut pilot = ContainerPilot::start(&format!(
        "{{ consul: '127.0.0.1:1', {HEAD} jobs: [ {{ name: 'web', exec: 'sleep 1000', port: 8000,
            interfaces: 'static:127.0.0.1', health: {{ exec: 'true', interval: 1, ttl: 60 }} }} ] }}"
    ));
    until("that it is away is told", || pilot.node.stdout().contains("discovery: ").then_some(()));
    signal(pilot.node.keeper(), Signal::TERM);
    assert_eq!(pilot.node.wait().code(), Some(0));
    let said = pilot.node.stdout();
    assert!(!said.contains("works again"), "{said}");
}

#[test]
fn an_initial_status_is_kept_until_the_first_pass() {
    let consul = Consul::new();
    let pilot = ContainerPilot::start(&format!(
        "{{ consul: '{}', {HEAD} jobs: [ {{ name: 'web', exec: 'sleep 1000', port: 8000, initial_status: 'warning',
            interfaces: 'static:127.0.0.1', health: {{ exec: 'test -e DIR/well', interval: 1, ttl: 60 }} }} ] }}",
        consul.address()
    ));
    let standing = || {
        let checks = consul.get("/v1/health/checks/web");
        checks[0]["Status"].as_str().map(str::to_owned)
    };
    until("it has been checked in vain", || {
        pilot.node.stdout().contains("check exec does not pass yet").then_some(())
    });
    until("it is there as its file says", || (standing()? == "warning").then_some(()));
    fs::write(pilot.node.path().join("well"), "").expect("a file");
    until("it is passing", || (standing()? == "passing").then_some(()));
}

#[test]
fn telemetry_is_shown_and_fed() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let port = port.expect("a port").port();
    let pilot = ContainerPilot::start(&format!(
        "{{ {HEAD} jobs: [ {{ name: 'web', exec: 'sleep 1000' }} ],
            telemetry: {{ port: {port}, interfaces: 'static:127.0.0.1', metrics: [
              {{ namespace: 'shop', subsystem: 'orders', name: 'taken', help: 'h', type: 'counter' }},
              {{ name: 'alone', help: 'h', type: 'gauge' }} ] }} }}"
    ));
    pilot.must(&["-putmetric", "shop_orders_taken=2", "-putmetric", "alone=1.5"]);
    pilot.must(&["-putmetric", "shop_orders_taken=3"]);
    let output = pilot.ask(&["-putmetric", "shop_orders_lost=1"]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let get = |path: &str| {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    };
    until("the figures are there", || {
        let text = get("/metrics")?;
        (text.contains("shop_orders_taken 5") && text.contains("alone 1.5")).then_some(())
    });
    assert!(get("/status").is_some_and(|text| text.contains(r#""Name":"web""#)));
}

#[test]
fn as_pid_1_a_wrong_file_ends_it_with_a_code_and_every_mistake() {
    let text = "{ jobs: [\n  { name: 'a', exce: 'x' },\n  { name: 'b', exec: 'x', when: { source: 'c', once: 'healthy' } } ] }";
    let mut pilot = ContainerPilot::launch(text, &own_pids());
    assert_eq!(pilot.node.wait().code(), Some(78));
    let told = pilot.node.stderr();
    for words in
        ["pilot.json5:2:16", "did you mean 'exec'?", "pilot.json5:3:43", "there is no job 'c'"]
    {
        assert!(told.contains(words), "{words}\n{told}");
    }
}

#[test]
fn a_run_ends_by_itself_when_all_jobs_have() {
    let mut pilot = ContainerPilot::launch(
        &format!(
            "{{ {HEAD} stopTimeout: 60, jobs: [
               {{ name: 'one', exec: 'echo one', restarts: 2 }},
               {{ name: 'two', exec: 'echo two', when: {{ source: 'one', once: 'stopped' }} }} ] }}"
        ),
        &[],
    );
    // At once: nothing waits for the stopTimeout to be over.
    assert_eq!(pilot.node.wait().code(), Some(0));
    assert_eq!(pilot.node.log("one"), ["one", "one", "one"]);
    assert_eq!(pilot.node.log("two"), ["two"]);
}

#[test]
fn a_run_that_takes_too_long_is_told_and_has_failed() {
    let mut pilot = ContainerPilot::launch(
        &format!(
            "{{ {HEAD} jobs: [
               {{ name: 'slow', exec: 'sleep 1000', timeout: '100ms' }},
               {{ name: 'after', exec: 'echo failed', when: {{ source: 'slow', once: 'exitFailed' }} }} ] }}"
        ),
        &[],
    );
    assert_eq!(pilot.node.wait().code(), Some(1));
    assert_eq!(pilot.node.log("after"), ["failed"]);
    let stdout = pilot.node.stdout();
    assert!(stdout.contains("slow: run 1 took longer than its timeout"), "{stdout}");
}

#[test]
fn a_job_that_is_only_checked_starts_what_waits_for_it() {
    let pilot = ContainerPilot::start(&format!(
        "{{ {HEAD} jobs: [
           {{ name: 'there', health: {{ exec: 'test -e DIR/there', interval: 1, ttl: 5 }} }},
           {{ name: 'app', exec: 'echo up', when: {{ source: 'there', once: 'healthy' }} }} ] }}"
    ));
    until("it has been looked for in vain", || {
        pilot.node.stdout().contains("check exec does not pass yet").then_some(())
    });
    assert!(pilot.node.log("app").is_empty());
    fs::write(pilot.node.path().join("there"), "").expect("a file");
    until("it has started", || (pilot.node.log("app") == ["up"]).then_some(()));
}
