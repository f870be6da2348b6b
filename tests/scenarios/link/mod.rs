//! What the keeper promises whoever is its agent: here the agent is the test.

mod kept;
mod upgrade;

use kept::{Kept, boottime_after, spawn, task};
use mainstay_core::task::{Bytes, MAX_INPUT};
use mainstay_core::{
    exit::{Asked, Exit},
    name::Name,
    signal::Signal,
};
use mainstay_tests::{is_alive, signal, until};
use mainstay_wire::format::{Format, NUMBER};
use mainstay_wire::link::{ControlRequest, KeeperRequest, KeeperResponse, ToAgent, ToKeeper};
use mainstay_wire::task::{TaskDone, TaskKey};
use std::{
    fs,
    time::{Duration, Instant},
};

fn name(job: &str) -> Name {
    Name::new(job).expect("a name")
}

fn killed() -> Exit {
    Exit::Signal { signal: Signal::KILL, oom: false }
}

#[test]
fn a_lease_that_runs_out_ends_the_tree_although_no_agent_is_there() {
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    let pids = kept.path().join("pids");
    let script = format!("trap '' TERM; sleep 1000 & echo $! > {}; wait", pids.display());
    let mut fenced = spawn("placed", 1, &script);
    fenced.fence_at = Some(boottime_after(Duration::from_millis(1500)));
    agent.say(&ToKeeper::Spawn(Box::new(fenced)));
    let leader = agent.spawned();
    let child: u32 =
        until("its child runs", || fs::read_to_string(&pids).ok()?.trim().parse().ok());
    agent.die();
    // The next one is there and silent: it says nothing, so nobody orders anything.
    let mut next = kept.next_agent();
    assert!(is_alive(leader) && is_alive(child));
    until("the lease has run out", || (!is_alive(leader) && !is_alive(child)).then_some(()));
    // Dead and not reaped yet: then its end is told a moment after the welcome.
    let record = next.greet().records.pop().unwrap_or_else(|| next.exited());
    assert!(record.fenced);
    assert_eq!((record.incarnation, &record.exit, record.asked), (1, &killed(), Asked::None));
}

#[test]
fn a_lease_that_is_extended_runs_out_later_and_not_before() {
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    let mut fenced = spawn("placed", 1, "exec sleep 1000");
    let first = boottime_after(Duration::from_millis(1000));
    fenced.fence_at = Some(first);
    agent.say(&ToKeeper::Spawn(Box::new(fenced)));
    let pid = agent.spawned();
    let fence_at = first + 1_000_000_000;
    agent.say(&ToKeeper::Extend { job: name("placed"), incarnation: 1, fence_at });
    // An extension for another incarnation is not one for this.
    let far = boottime_after(Duration::from_secs(3600));
    agent.say(&ToKeeper::Extend { job: name("placed"), incarnation: 2, fence_at: far });
    let record = agent.exited();
    let now = boottime_after(Duration::ZERO);
    assert!(record.fenced && !is_alive(pid));
    assert!(now >= fence_at, "killed {} ms early", (fence_at - now) / 1_000_000);
}

#[test]
fn a_spawn_after_its_lease_is_killed_at_once() {
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    let mut late = spawn("late", 1, "exec sleep 1000");
    late.fence_at = Some(boottime_after(Duration::ZERO));
    agent.say(&ToKeeper::Spawn(Box::new(late)));
    assert!(agent.exited().fenced);
}

#[test]
fn an_exit_is_told_to_every_agent_until_one_has_written_it_down() {
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    agent.say(&ToKeeper::Spawn(Box::new(spawn("short", 1, "exit 7"))));
    let record = agent.exited();
    assert_eq!(record.exit, Exit::Code { code: 7 });
    agent.die();
    for _ in 0..2 {
        let (agent, welcome) = kept.agent();
        assert_eq!(welcome.records, std::slice::from_ref(&record));
        agent.die();
    }
    let (mut agent, _) = kept.agent();
    agent.say(&ToKeeper::Ack { record: record.record });
    agent.said();
    agent.die();
    let (_, welcome) = kept.agent();
    assert_eq!(welcome.records, []);
}

#[test]
fn what_an_agent_said_before_it_died_is_done_once_and_only_whole_words_count() {
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    let whole = ToKeeper::Spawn(Box::new(spawn("whole", 1, "exec sleep 1000")));
    let half = ToKeeper::Spawn(Box::new(spawn("half", 1, "exec sleep 1000")));
    let mut bytes = mainstay_wire::frame::encode(&whole).expect("short");
    let cut = mainstay_wire::frame::encode(&half).expect("short");
    bytes.extend_from_slice(&cut[..cut.len() - 1]);
    agent.write(&bytes);
    agent.spawned();
    agent.die();
    let (mut agent, welcome) = kept.agent();
    let [job] = &welcome.jobs[..] else { panic!("one job: {:?}", welcome.jobs) };
    let pid = job.live.as_ref().expect("it lives").pid;
    assert_eq!((job.job.as_str(), job.highest), ("whole", 1));
    // The next agent cannot know whether it was done, and says it again.
    agent.say(&whole);
    assert_eq!(agent.said(), []);
    agent.die();
    let (_, welcome) = kept.agent();
    assert_eq!(welcome.jobs[0].live.as_ref().map(|live| live.pid), Some(pid));
}

#[test]
fn an_incarnation_is_started_once_and_never_beside_another() {
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    agent.say(&ToKeeper::Spawn(Box::new(spawn("job", 5, "exec sleep 1000"))));
    let pid = agent.spawned();
    for incarnation in [4, 5, 6] {
        agent.say(&ToKeeper::Spawn(Box::new(spawn("job", incarnation, "exec sleep 1000"))));
    }
    assert_eq!(agent.said(), []);
    assert!(is_alive(pid));
    // What names another incarnation does not touch this one.
    for incarnation in [4, 6] {
        agent.say(&ToKeeper::Kill { job: name("job"), incarnation });
    }
    assert_eq!(agent.said(), []);
    agent.say(&ToKeeper::Kill { job: name("job"), incarnation: 5 });
    assert_eq!(agent.exited().asked, Asked::Kill);
    agent.say(&ToKeeper::Spawn(Box::new(spawn("job", 5, "exec sleep 1000"))));
    assert_eq!(agent.said(), []);
    agent.say(&ToKeeper::Spawn(Box::new(spawn("job", 6, "exec sleep 1000"))));
    agent.spawned();
}

fn task_done(message: ToAgent) -> Option<(Exit, String, bool)> {
    match message {
        ToAgent::TaskDone(TaskDone { outcome, .. }) => {
            Some((outcome.exit, outcome.output, outcome.truncated))
        }
        _ => None,
    }
}

#[test]
fn a_task_that_takes_too_long_is_killed_with_all_it_started() {
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    let pids = kept.path().join("pids");
    let script =
        format!("trap '' TERM; sleep 1000 & echo $! > {}; echo begun; wait", pids.display());
    agent.say(&ToKeeper::RunTask(Box::new(task("job", Duration::from_millis(800), &script))));
    let (exit, output, truncated) = agent.wait(task_done);
    assert!(matches!(&exit, Exit::Error { error, .. } if error.contains("time")), "{exit:?}");
    assert_eq!((output.as_str(), truncated), ("begun\n", false));
    let child: u32 = fs::read_to_string(pids).expect("it began").trim().parse().expect("a pid");
    until("its child is gone", || (!is_alive(child)).then_some(()));
}

#[test]
fn of_what_a_task_says_its_beginning_and_its_end_come_back() {
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    let script = "seq 200000; exit 3";
    agent.say(&ToKeeper::RunTask(Box::new(task("job", Duration::from_secs(60), script))));
    let (exit, output, truncated) = agent.wait(task_done);
    assert_eq!((exit, truncated), (Exit::Code { code: 3 }, true));
    assert!(output.starts_with("1\n2\n3\n") && output.ends_with("\n199999\n200000\n"));
    assert!((60 << 10..66 << 10).contains(&output.len()), "{}", output.len());
    assert!(output.contains("\n…\n"), "something is missing");
}

#[test]
fn a_task_reads_all_of_its_input_as_the_user_and_in_the_directory_that_it_was_given() {
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    let input: Vec<u8> =
        (0..MAX_INPUT).map(|at| u8::try_from(at * 7 % 256).expect("a byte")).collect();
    let mut run = task("job", Duration::from_secs(60), "cat >copy; pwd; id -u");
    // For nobody's job, and without a reader that would be in a hurry.
    run.id = TaskKey { number: 4, owner: serde_json::json!({"cluster": "db"}) };
    run.job = None;
    run.input = Bytes(input.clone());
    run.exec.cwd = Some(kept.path().to_owned());
    agent.say(&ToKeeper::RunTask(Box::new(run.clone())));
    let done = agent.wait(|message| match message {
        ToAgent::TaskDone(done) => Some(done),
        _ => None,
    });
    assert_eq!(done.id, run.id, "its owner comes back as it was");
    let user = rustix::process::getuid().as_raw();
    let said = format!("{}\n{user}\n", kept.path().display());
    assert_eq!((done.outcome.exit, done.outcome.output), (Exit::Code { code: 0 }, said));
    assert_eq!(fs::read(kept.path().join("copy")).expect("it was read"), input);
}

#[test]
fn a_task_runs_once_however_often_agents_die_and_ask_for_it() {
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    let (runs, go) = (kept.path().join("runs"), kept.path().join("go"));
    let script = format!(
        "echo run >> {}; until [ -e {} ]; do sleep 0.02; done; echo done",
        runs.display(),
        go.display()
    );
    let run = ToKeeper::RunTask(Box::new(task("job", Duration::from_secs(60), &script)));
    agent.say(&run);
    until("it runs", || fs::read_to_string(&runs).ok().filter(|text| !text.is_empty()));
    agent.die();
    // It is still running.
    let (mut agent, _) = kept.agent();
    agent.say(&run);
    fs::write(go, "").expect("a scratch directory");
    let done = agent.wait(task_done);
    assert_eq!(done, (Exit::Code { code: 0 }, "done\n".to_owned(), false));
    // It is over, and nobody has written that down.
    agent.die();
    let (mut agent, _) = kept.agent();
    agent.say(&run);
    assert_eq!(agent.wait(task_done), done);
    agent.say(&ToKeeper::TaskTaken { id: task("job", Duration::ZERO, "").id });
    agent.said();
    agent.die();
    let (mut agent, _) = kept.agent();
    assert_eq!(agent.said(), []);
    assert_eq!(fs::read_to_string(runs).expect("it ran"), "run\n");
}

#[test]
fn an_order_at_a_control_socket_is_carried_out_by_the_keeper_when_no_agent_takes_it() {
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    let script = "trap 'echo no' TERM; while :; do sleep 0.05; done";
    agent.say(&ToKeeper::Spawn(Box::new(spawn("stubborn", 1, script))));
    agent.spawned();
    let mut client = kept.watched("stubborn").connect();
    client.say(b"event: stop\n\n").expect("it listens");
    let token = agent.wait(|message| match message {
        ToAgent::Asked { token, request: ControlRequest::Stop, incarnation: 1, .. } => Some(token),
        _ => None,
    });
    assert!(token > 0);
    // It has heard it and says nothing: a second later the keeper stops, then kills.
    let asked = Instant::now();
    let record = agent.exited();
    assert_eq!((record.exit, record.asked), (killed(), Asked::Stop));
    assert!(asked.elapsed() >= Duration::from_millis(1000), "the agent had its second");
    assert_eq!(client.last_state().expect("the last word")["status"], "DOWN");
}

#[test]
fn an_order_that_an_agent_has_taken_is_left_to_it_and_one_it_has_not_is_told_to_the_next() {
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    agent.say(&ToKeeper::Spawn(Box::new(spawn("job", 1, "exec sleep 1000"))));
    let pid = agent.spawned();
    let mut client = kept.watched("job").connect();
    client.say(b"event: stop\n\n").expect("it listens");
    let asked = |message| match message {
        ToAgent::Asked { token, request, .. } => Some((token, request)),
        _ => None,
    };
    let told = agent.wait(asked);
    agent.die();
    let (mut agent, _) = kept.agent();
    assert_eq!(agent.wait(asked), told, "the same order under the same token");
    agent.say(&ToKeeper::Taken { token: told.0 });
    agent.said();
    // Another order is not taken; when the keeper carries that one out, the first one's second is
    // over, too.
    client.say(b"event: signal\ndata: {\"signal\":\"SIGWINCH\"}\n\n").expect("it listens");
    let (token, ask) = agent.wait(asked);
    assert_eq!(ask, ControlRequest::Signal(Signal::WINCH));
    let log = kept.path().join("stderr");
    until("the keeper does it by itself", || {
        fs::read_to_string(&log).ok().filter(|text| text.contains("does not answer"))
    });
    assert!(is_alive(pid), "the stop was taken: the keeper leaves it alone");
    agent.die();
    let (mut agent, _) = kept.agent();
    let said = agent.said();
    assert!(said.iter().all(|message| asked(message.clone()).is_none_or(|it| it.0 != token)));
}

#[test]
fn a_signal_that_no_agent_has_taken_is_told_to_the_next() {
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    signal(kept.pid(), rustix::process::Signal::HUP);
    let told = agent.wait(|message| match message {
        ToAgent::Signalled { token, signal } => Some((token, signal)),
        _ => None,
    });
    agent.die();
    let (mut agent, welcome) = kept.agent();
    assert_eq!(welcome.signals, [told]);
    agent.say(&ToKeeper::Taken { token: told.0 });
    agent.said();
    agent.die();
    let (_, welcome) = kept.agent();
    assert_eq!(welcome.signals, []);
}

#[test]
fn a_node_that_is_signalled_under_a_silent_agent_is_stopped_by_the_keeper() {
    let mut kept = Kept::start();
    let (mut agent, _) = kept.agent();
    let mut main = spawn("main", 1, "trap 'exit 5' TERM; while :; do sleep 0.05; done");
    main.settings.main = true;
    agent.say(&ToKeeper::Spawn(Box::new(main)));
    agent.say(&ToKeeper::Spawn(Box::new(spawn("deaf", 1, "trap '' TERM; sleep 1000 & wait"))));
    let pids = [agent.spawned(), agent.spawned()];
    signal(kept.pid(), rustix::process::Signal::TERM);
    agent.wait(|message| matches!(message, ToAgent::Signalled { .. }).then_some(()));
    assert_eq!(kept.wait().code(), Some(5), "the main job's own code");
    assert!(pids.iter().all(|pid| !is_alive(*pid)));
}

#[test]
fn an_agent_that_talks_nonsense_is_replaced_and_nobody_notices() {
    let kept = Kept::start();
    let (mut agent, _) = kept.agent();
    agent.say(&ToKeeper::Spawn(Box::new(spawn("job", 1, "exec sleep 1000"))));
    let pid = agent.spawned();
    for nonsense in [&b"\xff\xff\xff\xffx"[..], b"\x02\x00\x00\x00{]", b"\x04\x00\x00\x00null"] {
        agent.write(nonsense);
        until("it is killed", || (!is_alive(agent.pid)).then_some(()));
        let (next, welcome) = kept.agent();
        assert_eq!(welcome.jobs[0].live.as_ref().map(|live| live.pid), Some(pid));
        agent = next;
    }
}

#[test]
fn an_agent_of_another_format_is_not_welcomed() {
    let kept = Kept::start();
    let mut agent = kept.next_agent();
    let format = Format { number: NUMBER + 1, lowest: Some(NUMBER + 1) };
    agent.say(&ToKeeper::Hello { format, version: "other".to_owned() });
    until("it is killed", || (!is_alive(agent.pid)).then_some(()));
}

#[test]
fn an_agent_of_a_newer_format_that_we_can_read_is_welcomed_and_new_words_are_passed_over() {
    let kept = Kept::start();
    let mut agent = kept.next_agent();
    let hello = format!(
        r#"{{"hello":{{"format":{},"lowest":{NUMBER},"version":"newer","mood":"good"}}}}"#,
        NUMBER + 1
    );
    agent.write_frame(&hello);
    agent.wait(|message| matches!(message, ToAgent::Welcome(_)).then_some(()));
    agent.write_frame(r#"{"rehearse":{"play":"Hamlet"}}"#);
    agent.write_frame(r#""applaud""#);
    agent.say(&ToKeeper::Spawn(Box::new(spawn("job", 1, "exec sleep 1000"))));
    agent.spawned();
    match kept.ask_raw(r#"{"rehearse":{"play":"Hamlet"}}"#) {
        KeeperResponse::Refused { error } => assert!(error.contains("rehearse"), "{error}"),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn idle_and_half_asking_clients_of_the_keeper_do_not_keep_others_out() {
    use std::{io::Write, os::unix::net::UnixStream};
    let kept = Kept::start();
    let (_agent, _) = kept.agent();
    let path = kept.path().join("run/keeper.sock");
    let mut held = Vec::new();
    for number in 0..300 {
        let mut stream = UnixStream::connect(&path).expect("the keeper listens");
        if number % 2 == 0 {
            let _ = stream.write_all(&[40, 0, 0, 0, b'{']);
        }
        held.push(stream);
    }
    assert!(matches!(kept.ask(&KeeperRequest::Figures), KeeperResponse::Figures(_)));
}
