//! gunicorn under constant load, as two services of one rollout: one whose children rotate, one whose
//! instances take turns. Nobody who asks notices.

use super::Booted;
use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

const SERVICES: &str = r#"
    [services.turns]
    unit = "turns@.service"
    templates = ["conf"]
    reload = "flip-flop"
    checks = [{ unicorn_health_comparison = { exec = ["cat", "/srv/count"] } }]
    reload_timeout = "60s"
    bake_time = "1s"
    [services.rotates]
    unit = "rotates.service"
    templates = ["conf"]
    checks = [{ change_child_pid = "all" }]
    reload_timeout = "60s"
    bake_time = "1s"
"#;
const APP: &str = r#"
with open("/srv/conf") as file:
    word = file.read().strip()
if word == "broken":
    raise RuntimeError("cannot start")

def app(environ, start_response):
    body = word.encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"#;

/// Both instances accept from one socket, which a third unit holds.
fn units(python: &str) -> Vec<(&'static str, String)> {
    let service = |socket: &str| {
        format!(
            "[Service]\nType=notify\nWorkingDirectory=/srv\nSockets={socket}.socket\nKillMode=mixed\n\
             ExecStart={python} -m gunicorn --workers 2 app:app\nExecReload=kill -HUP $MAINPID\n"
        )
    };
    let socket = |name: &str, service: &str| {
        format!("[Socket]\nListenStream=/run/{name}.sock\nService={service}.service\n")
    };
    vec![
        ("turns@.service", service("turns")),
        ("turns.socket", socket("turns", "holds")),
        ("holds.service", "[Service]\nExecStart=sleep 1000\n".to_owned()),
        ("rotates.service", service("rotates")),
        ("rotates.socket", socket("rotates", "rotates")),
    ]
}

/// Where gunicorn is.
fn python() -> Option<String> {
    let asked = ["-c", "import gunicorn, sys; print(sys.executable)"];
    let output = Command::new("python3").args(asked).output().ok()?;
    let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(path)
}

/// What a server answers to one request.
fn ask(socket: &Path) -> Result<String, String> {
    let told = |error: std::io::Error| error.to_string();
    let mut stream = UnixStream::connect(socket).map_err(told)?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).map_err(told)?;
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .map_err(told)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(told)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200") => Ok(body.to_owned()),
        Some(_) | None => Err(format!("answered '{answer}'")),
    }
}

/// Asks all the time while `story` is told; how often, and what went wrong.
fn under_load(sockets: &[PathBuf], story: impl FnOnce()) -> (u64, Vec<String>) {
    let (over, asked) = (AtomicBool::new(false), AtomicU64::new(0));
    let load = |socket: &PathBuf| {
        let mut wrong = Vec::new();
        while !over.load(Ordering::Relaxed) {
            asked.fetch_add(1, Ordering::Relaxed);
            if let Err(error) = ask(socket) {
                wrong.push(format!("{}: {error}", socket.display()));
            }
            // Constant, and not as much as the machine has.
            thread::sleep(Duration::from_millis(5));
        }
        wrong
    };
    let wrong = thread::scope(|scope| {
        let load = &load;
        let threads: Vec<_> =
            (0..2).flat_map(|_| sockets).map(|socket| scope.spawn(move || load(socket))).collect();
        story();
        over.store(true, Ordering::Relaxed);
        threads.into_iter().flat_map(|it| it.join().expect("no panic")).collect()
    });
    (asked.into_inner(), wrong)
}

#[test]
fn gunicorn_takes_versions_and_refuses_one_without_a_failed_request() {
    let Some(python) = python() else { return eprintln!("skipped: there is no gunicorn") };
    let units = units(&python);
    let units: Vec<(&str, &str)> = units.iter().map(|(name, it)| (*name, it.as_str())).collect();
    let files = [
        ("srv/app.py", APP),
        ("srv/conf", "one\n"),
        ("srv/count", r#"{"requests": 0, "failures": 0}"#),
    ];
    let Some(booted) = Booted::boot_with(SERVICES, &units, &files) else { return };
    booted.put("one");
    booted.start_unit("mainstay");
    booted.until_state("running");
    booted.0.must(&["systemctl", "start", "turns.socket", "rotates.socket"]);
    booted.0.must(&["systemctl", "start", "holds", "turns@1", "rotates"]);
    let sockets = ["run/turns.sock", "run/rotates.sock"].map(|it| booted.path(it));
    let answers = || sockets.each_ref().map(|it| ask(it).expect("it is answered"));
    assert_eq!(answers(), ["one", "one"]);
    let (asked, wrong) = under_load(&sockets, || {
        booted.applies("two");
        assert_eq!(answers(), ["two", "two"]);
        let why = booted.fails("broken", "two");
        assert!(why.contains("service 'turns'"), "{why}");
        assert_eq!(answers(), ["two", "two"]);
        booted.applies("three");
        assert_eq!(answers(), ["three", "three"]);
    });
    assert!(wrong.is_empty(), "{} of {asked}: {:?}", wrong.len(), &wrong[..wrong.len().min(5)]);
    assert!(asked > 200, "{asked}");
    eprintln!("{asked} requests, none of them failed");
}
