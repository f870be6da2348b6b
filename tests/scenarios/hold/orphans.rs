//! What a held command has started goes with it; what is left when the holder itself is killed goes
//! with whoever comes next.

use mainstay_tests::{Command, Scratch, Setup, binary, is_alive, signal, until};
use rustix::process::Signal;
use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Output, Stdio},
};

fn hold(dir: &Path, script: &str) -> Child {
    Command::new(binary())
        .args(["hold", "--dir"])
        .arg(dir)
        .args(["--", "sh", "-c", script])
        .current_dir(dir)
        .stdin(Stdio::null())
        .spawn()
        .expect("the binary can be started")
}

fn sweep(dir: &Path) -> Output {
    Command::new(binary()).arg("sweep").arg(dir).output().expect("the binary can be started")
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// The numbers that the script has written, once there are so many.
fn pids(file: &PathBuf, count: usize) -> Vec<u32> {
    until("they are there", || {
        let text = fs::read_to_string(file).ok()?;
        let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        (pids.len() == count && text.ends_with('\n')).then_some(pids)
    })
}

/// In its group, in a session of its own, and an orphan.
const FAMILY: &str = "sleep 1001 & echo $! > pids
setsid sleep 1002 & echo $! >> pids
(setsid sleep 1003 & echo $! >> pids)
";

#[test]
fn what_a_command_has_left_goes_with_its_holder() {
    let scratch = Scratch::new();
    // Without an environment nobody can tell whose it is, but for whom it has come to.
    let script = format!("{FAMILY}(env -i setsid sleep 1004 & echo $! >> pids)\nexit 5");
    let mut holder = hold(scratch.path(), &script);
    let family = pids(&scratch.path().join("pids"), 4);
    assert_eq!(holder.wait().expect("our own child").code(), Some(5));
    let left: Vec<&u32> = family.iter().filter(|pid| is_alive(**pid)).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn after_a_killed_holder_the_next_one_or_a_sweep_leaves_nothing() {
    for swept in [true, false] {
        let scratch = Scratch::new();
        let mut holder =
            hold(scratch.path(), &format!("{FAMILY}echo $$ >> pids; wait; sleep 1005"));
        let family = pids(&scratch.path().join("pids"), 4);
        let refused = sweep(scratch.path());
        assert_eq!(refused.status.code(), Some(1));
        assert!(told(&refused).contains("another mainstay holds"), "{}", told(&refused));
        holder.kill().expect("our own child");
        holder.wait().expect("our own child");
        until("its direct child is dead", || (!is_alive(family[3])).then_some(()));
        if swept {
            let output = sweep(scratch.path());
            assert_eq!(output.status.code(), Some(0));
            for (pid, command) in [(family[1], "sleep 1002"), (family[2], "sleep 1003")] {
                let line = format!("killed {pid} (by its cookie): {command}\n");
                assert!(told(&output).contains(&line), "{}", told(&output));
            }
        } else {
            let mut next = hold(scratch.path(), "exit 0");
            assert_eq!(next.wait().expect("our own child").code(), Some(0));
        }
        let left: Vec<&u32> = family.iter().filter(|pid| is_alive(**pid)).collect();
        assert!(left.is_empty(), "{left:?}");
        let again = sweep(scratch.path());
        assert_eq!(again.status.code(), Some(0));
        assert!(told(&again).lines().all(|line| !line.starts_with("killed")), "{}", told(&again));
    }
}

#[test]
fn after_keeper_and_agent_were_killed_together_a_sweep_leaves_nothing() {
    let config = "[node]\nexit = \"never\"\n[jobs.tree]\nexec = [\"sh\", \"-c\", \"setsid sleep 1001 & sleep 1000\"]\n";
    for setup in [Setup::config(config), Setup::config(config).without_cgroups()] {
        let mut node = setup.start();
        node.running("tree");
        until("the whole tree is there", || (node.processes().len() >= 5).then_some(()));
        let refused = sweep(&node.run_dir());
        assert_eq!(refused.status.code(), Some(1));
        assert!(told(&refused).contains("another mainstay (pid "), "{}", told(&refused));
        let (keeper, agent, before) = (node.keeper(), node.agent(), node.processes());
        signal(agent, Signal::STOP);
        signal(keeper, Signal::KILL);
        node.wait();
        signal(agent, Signal::KILL);
        let output = sweep(&node.run_dir());
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
        assert!(told(&output).contains("sleep 1001"), "{}", told(&output));
        let left: Vec<u32> = before.into_iter().filter(|pid| is_alive(*pid)).collect();
        assert!(left.is_empty(), "{left:?}");
        let again = sweep(&node.run_dir());
        assert!(told(&again).contains("nothing to sweep"), "{}", told(&again));
        node.launch_again();
        node.wait_until_ready();
    }
}

/// The number of a leader that is long dead belongs to somebody else's group by now.
#[test]
fn a_group_of_somebody_else_survives_the_next_run() {
    for started in [r#","started":1"#, ""] {
        let scratch = Scratch::new();
        let mut leader = Command::new("sh")
            .args(["-c", "sleep 1006 & echo $! > member"])
            .current_dir(scratch.path())
            .process_group(0)
            .spawn()
            .expect("a shell");
        let number = leader.id();
        leader.wait().expect("our own child");
        let member = pids(&scratch.path().join("member"), 1)[0];
        let run = scratch.path().join("run");
        fs::create_dir_all(run.join("jobs/web")).expect("a scratch directory");
        fs::write(run.join("lock"), "").expect("a scratch directory");
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux");
        let file = |name: &str, text: String| {
            let path = run.join(name);
            fs::write(&path, text).expect("a scratch directory");
            let hour = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
            fs::File::options()
                .write(true)
                .open(path)
                .and_then(|it| it.set_modified(hour))
                .expect("ours");
        };
        file(
            "run.json",
            format!(
                r#"{{"run":"0123456789abcdef","pid":1,"boot":"{}","cgroup":null,"version":"0"}}"#,
                boot.trim()
            ),
        );
        file(
            "jobs/web/state",
            format!(
                r#"{{"status":"UP","container_process_state":{{"up":true}},"pid":{number}{started}}}"#
            ),
        );
        let output = Command::new(binary())
            .args(["run", "--run-dir", "run", "--state-dir", "state", "--", "true"])
            .current_dir(scratch.path())
            .output()
            .expect("the binary can be started");
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
        assert!(is_alive(member), "it is nobody of ours");
        signal(member, Signal::KILL);
    }
}
