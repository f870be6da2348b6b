//! Run and state directories are ours and closed to others, and what is below them is never reached
//! by a link.

use mainstay_tests::{Command, Scratch, Setup, binary, needs_root};
use rustix::{process::Uid, thread::set_thread_res_uid};
use std::{
    fs,
    io::Read,
    os::unix::{
        fs::{PermissionsExt, chown, symlink},
        net::UnixListener,
    },
    path::Path,
    process::Output,
    thread,
};

const NOBODY: u32 = 65_534;

fn run(scratch: &Scratch, run_dir: &Path, state_dir: &Path) -> Output {
    Command::new(binary())
        .args(["run", "--run-dir"])
        .arg(run_dir)
        .arg("--state-dir")
        .arg(state_dir)
        .args(["--", "echo", "ours"])
        .current_dir(scratch.path())
        .output()
        .expect("the binary can be started")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
}

fn with_mode(scratch: &Scratch, name: &str, mode: u32) -> std::path::PathBuf {
    let dir = scratch.path().join(name);
    fs::create_dir(&dir).expect("a scratch directory");
    fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).expect("our own");
    dir
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn directories_of_ours_that_others_can_write_are_closed() {
    let scratch = Scratch::new();
    let (volume, state) = (with_mode(&scratch, "run", 0o777), with_mode(&scratch, "state", 0o777));
    fs::write(state.join("of-before"), "").expect("a scratch directory");
    // As a volume is at first, and then as somebody has opened what was a run directory.
    for _ in 0..2 {
        let output = run(&scratch, &volume, &state);
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
        assert_eq!((mode(&volume), mode(&state)), (0o711, 0o750));
        for dir in [&volume, &state] {
            fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).expect("our own");
        }
    }
}

#[test]
fn a_directory_that_serves_others_is_refused_and_one_in_it_would_do() {
    let scratch = Scratch::new();
    let shared = with_mode(&scratch, "shared", 0o1777);
    fs::write(shared.join("of-others"), "").expect("a scratch directory");
    let inside = shared.join("mainstay");
    let state = scratch.path().join("state");
    for (run_dir, state_dir, flag) in
        [(&shared, &state, "--run-dir"), (&state, &shared, "--state-dir")]
    {
        let output = run(&scratch, run_dir, state_dir);
        assert_eq!(output.status.code(), Some(1));
        let wanted = format!("would do: {flag} {}", inside.display());
        assert!(told(&output).contains(&wanted), "{}", told(&output));
        assert_eq!(mode(&shared), 0o1777, "it is left as it is");
    }
    assert_eq!(run(&scratch, &inside, &state).status.code(), Some(0));
    assert_eq!(mode(&inside), 0o711);
}

#[test]
fn somebody_elses_directory_is_refused_and_one_in_it_would_do() {
    needs_root();
    let scratch = Scratch::new();
    let (theirs, ours) = (with_mode(&scratch, "theirs", 0o755), scratch.path().join("ours"));
    chown(&theirs, Some(NOBODY), Some(NOBODY)).expect("root may");
    for (run_dir, state_dir, flag) in
        [(&theirs, &ours, "--run-dir"), (&ours, &theirs, "--state-dir")]
    {
        let output = run(&scratch, run_dir, state_dir);
        assert_eq!(output.status.code(), Some(1));
        let wanted = format!("would do: {flag} {}/mainstay", theirs.display());
        assert!(told(&output).contains("belongs to somebody else"), "{}", told(&output));
        assert!(told(&output).contains(&wanted), "{}", told(&output));
    }
    assert_eq!(run(&scratch, &theirs.join("mainstay"), &ours).status.code(), Some(0));
}

/// A volume that belongs to root, and a node that does not.
#[test]
fn a_volume_of_root_is_refused_to_others_who_can_make_a_directory_in_it() {
    needs_root();
    mainstay_tests::needs("setpriv");
    let scratch = Scratch::new();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).expect("our own");
    let volume = with_mode(&scratch, "volume", 0o777);
    let as_nobody = |run_dir: &Path| {
        Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(binary())
            .args(["run", "--run-dir"])
            .arg(run_dir)
            .arg("--state-dir")
            .arg(run_dir)
            .args(["--", "true"])
            .current_dir("/")
            .output()
            .expect("setpriv can be started")
    };
    let output = as_nobody(&volume);
    assert_eq!(output.status.code(), Some(1));
    let inside = volume.join("mainstay");
    assert!(
        told(&output).contains(&format!("--run-dir {}", inside.display())),
        "{}",
        told(&output)
    );
    let output = as_nobody(&inside);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
}

#[test]
fn links_below_the_directories_are_not_followed() {
    let scratch = Scratch::new();
    let state = with_mode(&scratch, "state", 0o777);
    let victim = scratch.path().join("victim");
    fs::write(&victim, "mine").expect("a scratch directory");
    fs::create_dir_all(state.join("logs/echo")).expect("a scratch directory");
    symlink(&victim, state.join("logs/echo/current")).expect("a scratch directory");
    symlink(&victim, state.join("state.lock")).expect("a scratch directory");
    let run_dir = scratch.path().join("run");
    let output = run(&scratch, &run_dir, &state);
    assert_eq!(output.status.code(), Some(1), "its lock is a link");
    fs::remove_file(state.join("state.lock")).expect("our own");
    let output = run(&scratch, &run_dir, &state);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert_eq!(fs::read_to_string(&victim).expect("it is still there"), "mine");
    let log = fs::read_to_string(state.join("logs/echo/current")).expect("a log of its own");
    assert!(log.contains("ours"), "{log}");
    // A directory of logs that leads elsewhere gets nothing either.
    let elsewhere = scratch.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a scratch directory");
    fs::remove_dir_all(state.join("logs/echo")).expect("our own");
    symlink(&elsewhere, state.join("logs/echo")).expect("a scratch directory");
    assert_eq!(run(&scratch, &run_dir, &state).status.code(), Some(0));
    assert_eq!(fs::read_dir(&elsewhere).expect("our own").count(), 0);
}

/// A squatter sits where the command of somebody else would look for its node.
#[test]
fn nothing_is_said_to_a_socket_of_somebody_else() {
    needs_root();
    mainstay_tests::needs("setpriv");
    let scratch = Scratch::new();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o777)).expect("our own");
    let as_user = |args: &[&str]| {
        Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(binary())
            .args(args)
            .env("XDG_RUNTIME_DIR", scratch.path())
            .current_dir("/")
            .output()
            .expect("setpriv can be started")
    };
    let told_where = told(&as_user(&["status"]));
    let dir = told_where.split_once("no node runs in ").and_then(|(_, rest)| rest.split_once(": "));
    let dir = std::path::PathBuf::from(dir.expect("where it is looked for").0);
    fs::create_dir_all(&dir).expect("a scratch directory");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("our own");
    let path = dir.join("mainstay.sock");
    // The kernel tells by whom a socket was made to listen: by a thread of this user.
    let squatter = thread::spawn(move || {
        let user = Uid::from_raw(12_345);
        set_thread_res_uid(user, user, user).expect("root may");
        let listener = UnixListener::bind(&path).expect("everybody can write there");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("its own");
        listener
    });
    let listener = squatter.join().expect("it listens");
    let user = as_user(&["environ", "DB_PASSWORD=secret"]);
    // Root asks by name, in a directory that is not the squatter's.
    let root = Command::new(binary())
        .args(["environ", "DB_PASSWORD=secret", "--run-dir"])
        .arg(&dir)
        .output()
        .expect("the binary can be started");
    for output in [user, root] {
        assert_eq!(output.status.code(), Some(4), "{}", told(&output));
        assert!(told(&output).contains("user 12345, neither you nor root"), "{}", told(&output));
    }
    // Both came, and said nothing.
    for _ in 0..2 {
        let mut heard = Vec::new();
        let (mut client, _) = listener.accept().expect("it came");
        client.read_to_end(&mut heard).expect("it went");
        assert_eq!(heard, b"");
    }
}

#[test]
fn root_may_ask_a_node_of_somebody_else() {
    needs_root();
    mainstay_tests::needs("setpriv");
    let scratch = Scratch::new();
    scratch.give_to(NOBODY);
    let node = Setup::config("[node]\nexit = \"never\"\n[jobs.idle]\nexec = \"sleep 1000\"\n")
        .under(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
        .launch_in(scratch);
    node.wait_until_ready();
    node.running("idle");
}
