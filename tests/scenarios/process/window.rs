//! Children on their way to exec: until they have a table of descriptors of their own they have
//! the keeper's, and whatever becomes of it meanwhile, each gets its own and nobody else's.

use mainstay_tests::{Node, Setup, proc, signal, until};
use mainstay_wire::run_dir::RunFile;
use rustix::process::Signal;
use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

/// More than the keeper has slots for: the last of them get a copy of its table.
const JOBS: usize = 110;

fn config(jobs: usize) -> String {
    let mut text = "[node]\nexit = \"never\"\n[jobs.first]\nexec = \"sleep 1000\"\n".to_owned();
    for number in 0..jobs {
        let _ = write!(
            text,
            "[jobs.job{number}]\nexec = [\"sh\", \"-c\", \"echo $MAINSTAY_JOB; exec sleep 1000\"]\n\
             sockets = {{ a = \"127.0.1.{number}:0\" }}\nrestart = {{ on = \"any\", delay = \"0s\" }}\n"
        );
    }
    text
}

/// Children that have not executed anything yet.
fn on_their_way(node: &Node) -> Vec<u32> {
    let exe = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let (agent, own) = (node.agent(), exe(node.keeper()));
    let mut children = proc::children(node.keeper());
    children.retain(|pid| *pid != agent && !node.is_spare(*pid) && exe(*pid) == own);
    children
}

/// stdin, one pipe for both outputs, one socket; the pipe.
fn assert_own(pid: u32) -> String {
    let open = proc::descriptors(pid);
    let kind = |number: usize| open[number].1.display().to_string();
    assert_eq!(open.len(), 4, "{open:?}");
    assert_eq!(open[0].1, Path::new("/dev/null"));
    assert!(kind(1).starts_with("pipe:") && kind(1) == kind(2), "{open:?}");
    assert!(kind(3).starts_with("socket:"), "{open:?}");
    kind(1)
}

#[test]
fn children_that_are_stopped_before_their_first_step_get_their_own_descriptors() {
    let node = Setup::config(config(0)).start();
    node.running("first");
    let Some(root) = RunFile::read(&node.run_dir()).and_then(|run| run.cgroup) else {
        return eprintln!("skipped: there are no cgroups here");
    };
    // Whoever is cloned into a frozen group stops before its first instruction.
    let freeze = |value: &str| fs::write(root.join("jobs/cgroup.freeze"), value).expect("a group");
    freeze("1");
    node.configure(&config(JOBS));
    node.must(&["reload", "--no-wait"]);
    let stopped = until("all were cloned", || {
        Some(on_their_way(&node)).filter(|children| children.len() == JOBS)
    });
    // Those that die there are started again; and the keeper goes on as if nothing were.
    for pid in stopped.iter().take(5) {
        signal(*pid, Signal::KILL);
    }
    until("others have come in their place", || {
        let now: BTreeSet<u32> = on_their_way(&node).into_iter().collect();
        (now.len() == JOBS && stopped.iter().take(5).all(|pid| !now.contains(pid))).then_some(())
    });
    node.kill_agent();
    freeze("0");
    let mut pipes = BTreeSet::new();
    for number in 0..JOBS {
        let name = format!("job{number}");
        let pid = node.running(&name);
        assert!(pipes.insert(assert_own(pid)), "{name} has the pipe of another");
        assert_eq!(node.until_logged(&name, &name), [name.as_str()]);
    }
}

#[test]
fn a_child_that_waits_before_exec_holds_nobody_elses_descriptors() {
    let waiting = "[jobs.waiting]\nexec = \"sleep 1000\"\nstdin = \"./fifo\"\n\
                   sockets = { a = \"127.0.2.1:0\" }\n";
    for setup in [Setup::config(config(3)), Setup::config(config(3)).without_cgroups()] {
        let node = setup.after("mkfifo fifo").start();
        for name in ["job0", "job1", "job2"] {
            node.running(name);
        }
        node.configure(&(config(3) + waiting));
        node.must(&["reload", "--no-wait"]);
        // Its own, and the pipe by which it tells of failures.
        until("it has only its own descriptors", || {
            let open = proc::descriptors(*on_their_way(&node).first()?);
            let kinds: Vec<String> =
                open.iter().map(|(_, path)| path.display().to_string()).collect();
            let [stdin, stdout, stderr, socket, failure] = &kinds[..] else { return None };
            let pipes = [stdout, stderr, failure].iter().all(|kind| kind.starts_with("pipe:"));
            (stdin == "/dev/null" && pipes && stdout == stderr && socket.starts_with("socket:"))
                .then_some(())
        });
    }
}
