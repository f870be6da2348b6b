//! A machine for one page: namespaces of its own for processes, mounts and the network, in which
//! nobody has ever started a node. What the page writes to `/etc`, `/run`, `/tmp` and `/var` is
//! there only, and all that it starts ends with it.

use super::page::repository;
use mainstay_tests::{Command, Scratch, binary, needs, needs_root, within};
use std::{fmt::Write, fs, path::Path, process::Stdio, time::Duration};

/// What a page asks for, one after the other.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// Of the page.
    pub(super) line: usize,
    pub(super) kind: Kind,
    pub(super) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Commands; what they leave behind, in the background or in the environment, is there for all
    /// that follow.
    First,
    /// Commands in a shell of their own, which ends at the first failure.
    Alone,
    /// Commands in a shell of their own, which goes on.
    Session,
    /// What is in a file from here on.
    File(String),
}

/// What came of a step; no code if it was never reached, or had no end.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) code: Option<i32>,
    pub(super) output: String,
}

/// The longest that a page may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(200);

/// The loopback has the address that the pages use.
const FRESH: &str = "set -e
mount -t tmpfs tmpfs /run
mkdir /run/page /run/source
mount --bind \"$SCRATCH\" /run/page
mount --bind \"$REPOSITORY\" /run/source
mount -t tmpfs tmpfs /tmp
for dir in etc var; do
    mkdir -p /run/over/$dir /run/over/$dir-work
    mount -t overlay overlay /$dir -o lowerdir=/$dir,upperdir=/run/over/$dir,workdir=/run/over/$dir-work
done
ip link set lo up
ip address add 10.0.0.1/32 dev lo
cd /run/page/here
set +e
";

/// Takes the steps of a page.
pub(super) fn run(steps: &[Step]) -> Vec<Outcome> {
    for tool in ["unshare", "mount", "ip", "bash", "curl", "openssl"] {
        needs(tool);
    }
    needs_root();
    let scratch = Scratch::new();
    for dir in ["here", "steps", "bin"] {
        fs::create_dir(scratch.path().join(dir)).expect("a scratch directory can be written");
    }
    fs::copy(binary(), scratch.path().join("bin/mainstay")).expect("a copy of the binary");
    let mut script = FRESH.to_owned();
    for (number, step) in steps.iter().enumerate() {
        let path = scratch.path().join("steps").join(number.to_string());
        fs::write(path, &step.text).expect("a scratch directory can be written");
        let file = format!("/run/page/steps/{number}");
        let call = match &step.kind {
            Kind::First => format!(". {file}"),
            Kind::Alone => format!("bash -e {file}"),
            Kind::Session => format!("bash {file}"),
            Kind::File(name) => format!("mkdir -p $(dirname {name}) && cp {file} {name}"),
        };
        let _ = writeln!(script, "{call} >{file}.out 2>&1\necho $? >{file}.code");
    }
    in_namespaces(&script, scratch.path());
    let told = |name: String| {
        let bytes = fs::read(scratch.path().join("steps").join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let outcome = |number: usize| Outcome {
        code: told(format!("{number}.code")).trim().parse().ok(),
        output: told(format!("{number}.out")),
    };
    (0..steps.len()).map(outcome).collect()
}

fn in_namespaces(script: &str, scratch: &Path) {
    let log = || fs::File::create(scratch.join("log")).expect("a scratch directory can be written");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut machine = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "--net", "--pid", "--fork"])
        .args(["--kill-child", "--mount-proc", "bash", "-c", script])
        .env_clear()
        .env("PATH", format!("/run/page/bin:{path}"))
        .env("HOME", "/run/page/here")
        .env("SCRATCH", scratch)
        .env("REPOSITORY", repository())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(log())
        .stderr(log())
        .spawn()
        .expect("unshare can be started");
    let end = std::time::Instant::now() + PATIENCE;
    within(PATIENCE + Duration::from_secs(10), "the page comes to its end", || {
        if std::time::Instant::now() > end {
            let _ = machine.kill();
        }
        machine.try_wait().expect("our own child")
    });
    let log = fs::read_to_string(scratch.join("log")).unwrap_or_default();
    assert!(log.is_empty(), "no machine for a page can be made: {log}");
}
