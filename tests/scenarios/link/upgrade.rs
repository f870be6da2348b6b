//! Upgrades as an agent sees them, and new binaries that are no good.

use super::kept::{Kept, spawn, task};
use mainstay_tests::{Command, binary, is_alive, needs, needs_root, until};
use mainstay_wire::link::{KeeperRequest, KeeperResponse, ToAgent, ToKeeper};
use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

fn upgrade(kept: &Kept, binary: Option<&Path>) -> KeeperResponse {
    kept.ask(&KeeperRequest::Upgrade { binary: binary.map(Path::to_owned) })
}

fn refused(answer: KeeperResponse) -> String {
    match answer {
        KeeperResponse::Refused { error } => error,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn everything_goes_through_an_upgrade_and_it_is_told_until_it_is_written_down() {
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    agent.say(&ToKeeper::Spawn(Box::new(spawn("job", 3, "exec sleep 1000"))));
    let pid = agent.spawned();
    agent.say(&ToKeeper::Spawn(Box::new(spawn("short", 1, "exit 7"))));
    let record = agent.exited();
    let go = kept.path().join("go");
    let script = format!("echo begun; until [ -e {} ]; do sleep 0.02; done", go.display());
    agent.say(&ToKeeper::RunTask(Box::new(task("job", Duration::from_secs(60), &script))));
    let mut client = kept.watched("job").connect();
    assert_eq!(client.next_state().expect("a state")["incarnation"], 3);

    assert!(matches!(upgrade(&kept, None), KeeperResponse::Done { .. }));
    // This one does not live to write it down.
    let mut agent = kept.next_agent();
    let welcome = agent.greet();
    assert_eq!(welcome.upgraded.len(), 1);
    agent.die();
    let (mut agent, welcome) = kept.agent();
    assert_eq!(welcome.upgraded.len(), 1, "told again");
    assert_eq!(welcome.records, [record]);
    let job = welcome.jobs.iter().find(|job| job.job.as_str() == "job").expect("it is held");
    assert_eq!((job.highest, job.live.as_ref().map(|live| live.pid)), (3, Some(pid)));
    agent.said();
    agent.die();
    let (mut agent, welcome) = kept.agent();
    assert_eq!(welcome.upgraded.len(), 0, "one that was ready had written it down");
    fs::write(go, "").expect("a scratch directory");
    let output = agent.wait(|message| match message {
        ToAgent::TaskDone(done) => Some(done.outcome.output),
        _ => None,
    });
    assert_eq!(output, "begun\n");
    agent.say(&ToKeeper::Kill {
        job: mainstay_core::name::Name::new("job").expect("a name"),
        incarnation: 3,
    });
    agent.exited();
    let last = client.last_state().expect("the client is still connected");
    assert_eq!((last["status"].as_str(), last["incarnation"].as_u64()), (Some("DOWN"), Some(3)));
}

#[test]
fn the_outcome_of_a_task_is_told_over_agents_and_upgrades_until_it_is_taken() {
    let outcome = |message| match message {
        ToAgent::TaskDone(done) => Some(done),
        _ => None,
    };
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    let run = task("job", Duration::from_secs(60), "echo once >>runs; echo said; exit 3");
    let mut run = Box::new(run);
    run.exec.cwd = Some(kept.path().to_owned());
    agent.say(&ToKeeper::RunTask(run.clone()));
    let done = agent.wait(outcome);
    assert_eq!(done.outcome.output, "said\n");
    agent.die();
    let (mut agent, _) = kept.agent();
    assert_eq!(agent.wait(outcome), done, "told to the next agent");
    assert!(matches!(upgrade(&kept, None), KeeperResponse::Done { .. }));
    let mut agent = kept.next_agent();
    agent.greet();
    assert_eq!(agent.wait(outcome), done, "told after the upgrade");
    // It asks once more, as one does that has not written down that it is over.
    agent.say(&ToKeeper::RunTask(run));
    agent.say(&ToKeeper::TaskTaken { id: done.id });
    agent.said();
    agent.die();
    let (mut agent, _) = kept.agent();
    assert_eq!(agent.said(), [], "told no more");
    assert_eq!(fs::read_to_string(kept.path().join("runs")).expect("it ran"), "once\n");
}

#[test]
fn a_binary_that_does_not_pass_the_check_is_refused_with_its_own_words() {
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    agent.say(&ToKeeper::Spawn(Box::new(spawn("job", 1, "exec sleep 1000"))));
    let pid = agent.spawned();
    let error = refused(upgrade(&kept, Some(&kept.another_binary("keeper-refuses"))));
    assert!(error.contains("it does not want to"), "{error}");
    let error = refused(upgrade(&kept, Some(Path::new("/no/such/binary"))));
    assert!(error.contains("/no/such/binary"), "{error}");
    let text = kept.path().join("text-refuses");
    fs::write(&text, "no program").expect("a scratch directory");
    let error = refused(upgrade(&kept, Some(&text)));
    assert!(error.contains("text-refuses"), "{error}");
    assert_eq!(agent.said(), [], "the agent is the same, and heard nothing of it");
    assert!(is_alive(pid));
}

#[test]
fn a_new_image_that_cannot_take_over_goes_back_to_the_old_one() {
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    agent.say(&ToKeeper::Spawn(Box::new(spawn("job", 1, "exec sleep 1000"))));
    let pid = agent.spawned();
    let error = refused(upgrade(&kept, Some(&kept.another_binary("keeper-gives-back"))));
    assert!(error.contains("it has lost its memory"), "{error}");
    let (_agent, welcome) = kept.agent();
    assert_eq!(welcome.upgraded.len(), 0, "there was no upgrade");
    assert_eq!(welcome.jobs[0].live.as_ref().map(|live| live.pid), Some(pid));
    let running = fs::read_link(format!("/proc/{}/exe", kept.pid())).expect("it runs");
    assert!(!running.to_string_lossy().contains("gives-back"), "{}", running.display());
    assert!(is_alive(pid));
    // And it can still be upgraded.
    assert!(matches!(upgrade(&kept, None), KeeperResponse::Done { .. }));
}

#[test]
fn two_upgrades_in_a_row_have_their_own_time_each() {
    let kept = Kept::start();
    // An upgrade is told again to the next agent if the last one was not heard to be ready.
    let mut upgrades = std::collections::BTreeSet::new();
    let (mut agent, _) = kept.agent();
    for _ in 0..3 {
        assert!(matches!(upgrade(&kept, None), KeeperResponse::Done { .. }));
        let (next, welcome) = kept.agent();
        upgrades.extend(welcome.upgraded.iter().map(|upgrade| upgrade.number));
        agent = next;
    }
    assert_eq!(upgrades.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(agent.said(), []);
}

#[test]
fn a_binary_of_another_format_does_not_pass_its_own_check() {
    let scratch = mainstay_tests::Scratch::new();
    let snapshot = scratch.path().join("snapshot");
    fs::write(&snapshot, r#"{"format":999,"version":"9.9.9"}"#).expect("a scratch directory");
    let line = format!(
        "exec {} __check --run-dir {} 3<{}",
        binary().display(),
        scratch.path().display(),
        snapshot.display()
    );
    let output = Command::new("sh").args(["-c", &line]).output().expect("there is a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("format is 999"), "{said}");
}

#[test]
fn an_upgrade_waits_for_no_client_that_is_silent() {
    let kept = Kept::start();
    let (_agent, _) = kept.agent();
    let path = kept.path().join("run/keeper.sock");
    let silent: Vec<_> = (0..10)
        .map(|_| std::os::unix::net::UnixStream::connect(&path).expect("the keeper listens"))
        .collect();
    assert!(matches!(upgrade(&kept, None), KeeperResponse::Done { .. }));
    until("the next agent", || Some(kept.next_agent()));
    drop(silent);
}

/// Upgrades to a binary that finds itself without threads; `then` sees it so, and may help.
fn upgrade_and_starve(uid: u32, then: impl Fn(&Kept, &dyn Fn())) -> KeeperResponse {
    needs_root();
    needs("setpriv");
    needs("prlimit");
    let kept = Kept::start_as(uid);
    let (mut agent, _) = kept.agent();
    agent.say(&ToKeeper::Spawn(Box::new(spawn("job", 1, "exec sleep 1000"))));
    let pid = agent.spawned();
    let starving = kept.another_binary("keeper-starves");
    fs::set_permissions(&starving, PermissionsExt::from_mode(0o755)).expect("our own");
    let feed = || {
        let id = uid.to_string();
        // As that user, since not every root may change the limits of others.
        let fed = Command::new("setpriv")
            .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
            .args(["prlimit", "--pid", &kept.pid().to_string(), "--nproc=1000:"])
            .status();
        assert!(fed.expect("setpriv can be started").success());
    };
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| upgrade(&kept, Some(&starving)));
        until("the new image runs, and starves", || {
            let runs = fs::read_link(format!("/proc/{}/exe", kept.pid())).ok()?;
            let threads = fs::read_dir(format!("/proc/{}/task", kept.pid())).ok()?.count();
            let limits = fs::read_to_string(format!("/proc/{}/limits", kept.pid())).ok()?;
            let soft = limits.lines().find_map(|line| line.strip_prefix("Max processes"))?;
            let starves = soft.split_whitespace().next() == Some("1") && threads == 1;
            (runs == starving && starves).then_some(())
        });
        then(&kept, &feed);
        asked.join().expect("it was answered")
    });
    let (_agent, welcome) = kept.agent();
    assert_eq!(welcome.jobs[0].live.as_ref().map(|live| live.pid), Some(pid));
    assert!(is_alive(pid));
    answer
}

#[test]
fn a_new_image_that_can_have_no_thread_asks_again_until_it_can() {
    let uid = 63_000 + std::process::id() % 1000;
    let answer = upgrade_and_starve(uid, |_, feed| feed());
    assert!(matches!(answer, KeeperResponse::Done { .. }), "{answer:?}");
}

#[test]
fn a_new_image_that_gets_no_thread_for_too_long_goes_back_to_the_old_one() {
    let uid = 64_000 + std::process::id() % 1000;
    let answer = upgrade_and_starve(uid, |kept, feed| {
        let old = fs::canonicalize(Kept::binary()).expect("it was built");
        until("the old image is back", || {
            let runs = fs::read_link(format!("/proc/{}/exe", kept.pid())).ok()?;
            (runs == old).then_some(())
        });
        // It waits for the same, and has only to be given it.
        feed();
    });
    let error = refused(answer);
    assert!(error.contains("gave back") && error.contains("temporarily unavailable"), "{error}");
}
