//! Mainstay as the init of a container: PID 1, non-root, little that can be written.

use mainstay_tests::{
    Command, Node, Scratch, Setup, binary, is_alive, needs, needs_root, proc, signal, until,
};
use rustix::process::Signal;
use std::{fs, process::Stdio};

/// A pid namespace with a /proc of its own.
const OWN_PIDS: [&str; 4] = ["unshare", "--pid", "--mount-proc", "--kill-child"];

fn as_pid_1(setup: Setup) -> Setup {
    needs_root();
    needs("unshare");
    setup.under(&OWN_PIDS)
}

fn zombies(parent: u32) -> usize {
    proc::children(parent).into_iter().filter(|pid| !is_alive(*pid)).count()
}

#[test]
fn as_pid_1_it_passes_the_exit_code_on() {
    for code in [0, 7, 255] {
        let script = format!("echo $PPID; exit {code}");
        let mut node = as_pid_1(Setup::command(&["sh", "-c", &script])).launch();
        assert_eq!(node.wait().code(), Some(code));
        assert_eq!(node.log("sh"), ["1"], "the keeper is PID 1");
    }
}

#[test]
fn as_pid_1_it_reaps_orphans() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.mother]
        exec = ["sh", "-c", "for i in $(seq 60); do (sh -c 'exit 3' &); (setsid sh -c 'exit 4' &); done; echo done; exec sleep 1000"]
    "#;
    for setup in [Setup::config(config), Setup::config(config).without_cgroups()] {
        let node = as_pid_1(setup).start();
        let keeper = node.keeper();
        assert!(proc::status(keeper, "NSpid").ends_with("\t1"));
        node.until_logged("mother", "done");
        until("only the agent, its spare and the job are left, and no zombie", || {
            (proc::children(keeper).len() == 3 && zombies(keeper) == 0).then_some(())
        });
        assert_eq!(node.status()["strays"], serde_json::json!([]));
    }
}

#[test]
fn as_pid_1_a_term_stops_all_and_the_main_jobs_code_wins() {
    let config = r#"
        [jobs.main]
        exec = "sleep 1000"
        main = true
        [jobs.polite]
        exec = ["sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"]
        [jobs.stubborn]
        exec = ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"]
        stop = { timeout = "200ms" }
    "#;
    let mut node = as_pid_1(Setup::config(config)).start();
    node.running("main");
    node.until_logged("polite", "up");
    node.until_logged("stubborn", "up");
    let inside = node.processes();
    signal(node.keeper(), Signal::TERM);
    assert_eq!(node.wait().code(), Some(143));
    assert_eq!(node.log("polite").last().map(String::as_str), Some("bye"));
    assert!(inside.iter().all(|pid| !is_alive(*pid)));
}

#[test]
fn as_pid_1_of_a_whole_container_it_survives_its_agent() {
    needs_root();
    let config = "[node]\nexit = \"never\"\n[jobs.one]\nexec = \"sleep 1000\"\n";
    let more = ["unshare", "--mount", "--net", "--ipc", "--uts", "--cgroup"];
    let node = as_pid_1(Setup::config(config)).under(&more).start();
    let pid = node.running("one");
    node.kill_agent();
    assert_eq!(node.running("one"), pid);
    node.must(&["restart", "one"]);
    let output = node.must(&["upgrade"]);
    assert!(output.contains("the node runs on mainstay"), "{output}");
    node.wait_until_ready();
    node.running("one");
}

#[test]
fn as_pid_1_it_is_not_misled_by_a_proc_in_which_that_is_another() {
    let config = "[node]\nexit = \"never\"\n[jobs.one]\nexec = \"sleep 1000\"\n";
    // Whose heap begins where is random: sometimes the other's would do.
    for _ in 0..5 {
        let inner = Setup::config(config).under(&["unshare", "--pid", "--kill-child"]);
        let node = as_pid_1(inner).start();
        node.running("one");
        assert!(!node.stderr().contains("the agent was killed"), "{}", node.stderr());
    }
}

fn as_nobody(setup: Setup) -> Node {
    needs_root();
    needs("setpriv");
    let scratch = Scratch::new();
    scratch.give_to(65534);
    let node = setup
        .under(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"])
        .launch_in(scratch);
    node.wait_until_ready();
    node
}

#[test]
fn as_non_root_everything_but_other_users_works() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.one]
        exec = ["sh", "-c", "id -u; echo text > /dev/stdout; echo more > /dev/stderr; exec sleep 1000"]
        limits = { memory = "100M" }
        [jobs.other]
        exec = "sleep 1000"
        user = "daemon"
    "#;
    let mut node = as_nobody(Setup::config(config));
    let pid = node.running("one");
    assert_eq!(proc::status(pid, "Uid"), "65534\t65534\t65534\t65534");
    until("its output is there", || (node.log("one") == ["65534", "text", "more"]).then_some(()));
    let job = node.job("one");
    assert_eq!(job["tree"], "group");
    assert_eq!(job["unenforced"], serde_json::json!(["memory"]));
    let why = node.until_state("other", "BACKOFF")["exit"]["error"].clone();
    assert!(why.as_str().is_some_and(|why| why.contains("not permitted")), "{why}");
    node.kill_agent();
    assert_eq!(node.running("one"), pid);
    node.must(&["shutdown"]);
    assert_eq!(node.wait().code(), Some(0));
}

#[test]
fn as_non_root_directories_are_found_without_being_told() {
    needs_root();
    let scratch = Scratch::new();
    scratch.give_to(65534);
    let run = |variables: &[(&str, &str)]| {
        let output = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(binary())
            .args(["run", "--", "sh", "-c", "echo out; exit 5"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(variables.iter().copied())
            .current_dir(scratch.path())
            .stdin(Stdio::null())
            .output()
            .expect("setpriv can be started");
        assert_eq!(output.status.code(), Some(5), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "sh | out\n");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let told = run(&[("XDG_RUNTIME_DIR", &path("r")), ("XDG_STATE_HOME", &path("s"))]);
    assert!(!told.contains("directory"), "{told}");
    // One for each project, the same in both.
    let of_project = |parent: &str| -> std::path::PathBuf {
        let entries = fs::read_dir(path(parent)).expect("a directory");
        let mut dirs = entries.map(|entry| entry.expect("readable").path());
        match (dirs.next(), dirs.next()) {
            (Some(one), None) => one,
            other => panic!("{parent}: {other:?}"),
        }
    };
    let (run_dir, state_dir) = (of_project("r/mainstay"), of_project("s/mainstay"));
    assert_eq!(run_dir.file_name(), state_dir.file_name());
    assert!(fs::exists(run_dir.join("lock")).expect("readable"));
    assert!(fs::exists(state_dir.join("logs/sh/current")).expect("readable"));
    // No home at all: the run directory, and a word about it.
    let told = run(&[("XDG_RUNTIME_DIR", &path("r"))]);
    assert!(told.contains("no state directory"), "{told}");
    assert!(fs::exists(run_dir.join("logs/sh/current")).expect("readable"));
}

#[test]
fn a_read_only_root_and_noexec_tmpfs_are_enough() {
    needs_root();
    let config = r#"
        [node]
        exit = "never"
        [jobs.one]
        exec = ["sh", "-c", "touch ./x 2>/dev/null || echo read only; exec sleep 1000"]
        notify = true
        sockets = { api = "127.0.0.1:0" }
    "#;
    let mut node = Setup::config(config)
        .with_mounts(
            "mkdir -p \"$MAINSTAY_RUN_DIR\" \"$MAINSTAY_STATE_DIR\"
             mount --rbind / /
             mount -o remount,bind,ro /
             # Where /tmp is no part of it.
             mount --bind . .
             mount -o remount,bind,ro \"$PWD\"
             for dir in \"$MAINSTAY_RUN_DIR\" \"$MAINSTAY_STATE_DIR\"; do
                 mount -t tmpfs -o noexec,nosuid,nodev,mode=755 none \"$dir\"
             done
             cd \"$PWD\"",
        )
        .under(&["unshare", "--pid", "--fork", "--kill-child"])
        .launch();
    // The namespace is entered below what the test has started.
    until("the keeper is there", || node.ask(&["version"]).status.success().then_some(()));
    let keeper = node.keeper();
    let root = format!("/proc/{keeper}/root{}", node.path().display());
    let ask = |args: &[&str]| {
        let mut command = node.command(args);
        command.env("MAINSTAY_RUN_DIR", format!("{root}/run"));
        command.env("MAINSTAY_STATE_DIR", format!("{root}/state"));
        command.output().expect("the binary can be started")
    };
    until("the agent answers", || ask(&["status"]).status.success().then_some(()));
    until("the job knows it", || {
        let text = ask(&["logs", "one"]).stdout;
        String::from_utf8_lossy(&text).contains("read only").then_some(())
    });
    signal(node.agent(), Signal::KILL);
    until("another agent answers", || ask(&["status"]).status.success().then_some(()));
    assert!(ask(&["upgrade"]).status.success());
    until("another keeper answers", || ask(&["status"]).status.success().then_some(()));
    assert!(ask(&["shutdown"]).status.success());
    assert_eq!(node.wait().code(), Some(0));
}

#[test]
fn without_writable_cgroups_trees_are_process_groups_and_status_says_so() {
    needs_root();
    let config = r#"
        [node]
        exit = "never"
        [jobs.one]
        exec = ["sh", "-c", "setsid sleep 1001 & echo $!; exec sleep 1000"]
    "#;
    let script = "for mount in $(awk '$3 ~ /^cgroup/ { print $2 }' /proc/mounts); do
                      mount -o remount,bind,ro \"$mount\"
                  done";
    let node = Setup::config(config).with_mounts(script).start();
    node.running("one");
    assert_eq!(node.job("one")["tree"], "group");
    let escaped: u32 = until("it has said its child", || node.log("one").first()?.parse().ok());
    node.must(&["stop", "one"]);
    assert!(!is_alive(escaped));
}

/// Answers ENOSYS to clone3, as the default profile of container engines has done.
const WITHOUT_CLONE3: &str = "
import ctypes, os, struct, sys
CLONE3, ALLOW, ENOSYS = 435, 0x7fff0000, 0x00050000 | 38
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, CLONE3), (0x06, 0, 0, ENOSYS), (0x06, 0, 0, ALLOW)]
code = b''.join(struct.pack('HBBI', *step) for step in steps)
held = ctypes.create_string_buffer(code)
program = struct.pack('HxxxxxxQ', len(steps), ctypes.addressof(held))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0, 'no_new_privs'
assert libc.prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execvp(sys.argv[1], sys.argv[1:])
";

#[test]
fn where_clone3_is_forbidden_trees_are_cgroups_all_the_same() {
    needs_root();
    needs("python3");
    let config = r#"
        [node]
        exit = "never"
        [jobs.one]
        exec = ["sh", "-c", "env -i setsid sleep 1001 & echo $!; exec sleep 1000"]
        [jobs.plain]
        exec = "sleep 1000"
    "#;
    let plain = Setup::config(config).start();
    plain.running("plain");
    let usual = plain.job("plain")["tree"].clone();
    drop(plain);
    let node = Setup::config(config).under(&["python3", "-c", WITHOUT_CLONE3]).start();
    node.running("one");
    assert_eq!(proc::status(node.keeper(), "Seccomp"), "2", "the filter is in force");
    assert_eq!(node.job("one")["tree"], usual);
    let escaped: u32 = until("it has said its child", || node.log("one").first()?.parse().ok());
    node.must(&["restart", "one"]);
    if usual == "cgroup" {
        assert!(!is_alive(escaped));
    }
}
