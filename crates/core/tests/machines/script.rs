//! The language of the transcripts: one line is one input, told at a time.
//!
//! ```text
//! node exit=main stop_timeout=8s          the plan, before anything else
//! job web main restart=any delay=1s       keys as in a configuration file, shortened
//! boot
//! at 200ms exited web 1 code 1            waits that are over by then end first
//! spawned web 2
//! exited web 2 signal KILL asked stop
//! done web 2 code 0                       its stop.exec has ended
//! timer web 2 stop                        a wait ends, whatever was asked for
//! start web | stop web | kill web | restart web | signal web HUP | shutdown
//! signalled TERM                          the node itself received it
//! agent dies                              what is not in the journal is lost
//! attached web=2:live db=1                the next agent: highest incarnation, and if it lives
//! show                                    what an observer sees
//! ```

use mainstay_core::{
    clock::Mono,
    exit::{Asked, Exit},
    name::Name,
    node::{Held, Input, Request, TaskId, TaskKind, Token, Wait},
    plan::{ExitRule, JobPlan, NodePlan, Plan, Reach, Restart, RestartOn},
};
use std::time::Duration;

pub(crate) enum Line {
    Node(NodePlan),
    Job(Box<JobPlan>),
    At(Mono),
    Say(Input),
    AgentDies,
    Show,
}

/// The lines that one line of a script stands for: the time first, if it has one.
pub(crate) fn read(text: &str, agent_restarts: u64) -> Vec<Line> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let mut lines = Vec::new();
    if let ["at", time, rest @ ..] = words.as_slice() {
        lines.push(Line::At(Mono::default().after(duration(time))));
        words = rest.to_vec();
        if words.is_empty() {
            return lines;
        }
    }
    lines.push(match words.as_slice() {
        ["node", keys @ ..] => Line::Node(node_plan(keys)),
        ["job", job, keys @ ..] => Line::Job(Box::new(job_plan(job, keys))),
        ["agent", "dies"] => Line::AgentDies,
        ["show"] => Line::Show,
        words => Line::Say(input(words, agent_restarts)),
    });
    lines
}

fn input(words: &[&str], agent_restarts: u64) -> Input {
    let request = Input::Request;
    match words {
        ["boot"] => Input::Boot,
        ["attached", held @ ..] => Input::Attached {
            held: held.iter().map(|word| self::held(word)).collect(),
            agent_restarts,
            upgraded: Vec::new(),
        },
        ["upgraded", from, to, held @ ..] => Input::Attached {
            held: held.iter().map(|word| self::held(word)).collect(),
            agent_restarts,
            upgraded: vec![((*from).to_owned(), (*to).to_owned())],
        },
        ["spawned", job, n] => {
            Input::Spawned { job: name(job), incarnation: number(n), pid: pid(number(n)) }
        }
        ["exited", job, n, how @ ..] => {
            let (exit, asked) = exit(how);
            Input::Exited { job: name(job), incarnation: number(n), exit, asked }
        }
        ["done", job, n, how @ ..] => {
            let id = TaskId { job: name(job), incarnation: number(n), what: TaskKind::StopExec };
            Input::TaskDone { id, exit: exit(how).0 }
        }
        ["timer", "shutdown"] => Input::Timer { token: Token::ShutdownDeadline },
        ["timer", job, n, wait] => {
            let token =
                Token::Job { job: name(job), incarnation: number(n), wait: self::wait(wait) };
            Input::Timer { token }
        }
        ["start", job] => request(Request::Start { job: name(job) }),
        ["stop", job] => request(Request::Stop { job: name(job) }),
        ["kill", job] => request(Request::Kill { job: name(job) }),
        ["restart", job] => request(Request::Restart { job: name(job) }),
        ["signal", job, signal] => request(Request::Signal {
            job: name(job),
            signal: signal.parse().expect("a signal"),
            to: Reach::Leader,
        }),
        ["shutdown"] => request(Request::Shutdown),
        ["signalled", signal] => Input::Signalled { signal: signal.parse().expect("a signal") },
        ["loggap", job, lines] => Input::LogGap { job: name(job), lines: number(lines) },
        ["stray", pid, command] => Input::StrayKilled {
            pid: u32::try_from(number(pid)).expect("a pid"),
            command: (*command).to_owned(),
        },
        other => panic!("not a line of a script: {other:?}"),
    }
}

fn exit(how: &[&str]) -> (Exit, Asked) {
    let (how, asked) = match how {
        [how @ .., "asked", "stop"] => (how, Asked::Stop),
        [how @ .., "asked", "kill"] => (how, Asked::Kill),
        how => (how, Asked::None),
    };
    let exit = match how {
        ["code", code] => Exit::Code { code: code.parse().expect("a code") },
        ["signal", signal] => {
            Exit::Signal { signal: signal.parse().expect("a signal"), oom: false }
        }
        ["error", errno, text @ ..] => {
            Exit::Error { error: text.join(" "), errno: errno.parse().expect("an errno") }
        }
        other => panic!("not an exit: {other:?}"),
    };
    (exit, asked)
}

fn held(word: &str) -> Held {
    let (job, what) = word.split_once('=').expect("job=highest[:live]");
    let (highest, live) = match what.split_once(':') {
        Some((highest, "live")) => (number(highest), Some((number(highest), pid(number(highest))))),
        Some((_, other)) => panic!("not a way to be held: {other}"),
        None => (number(what), None),
    };
    Held { job: name(job), highest, live }
}

fn node_plan(keys: &[&str]) -> NodePlan {
    let mut plan = default_node();
    for (key, value) in keys.iter().map(|key| pair(key)) {
        match key {
            "exit" => {
                plan.exit = match value {
                    "main" => ExitRule::Main,
                    "all" => ExitRule::All,
                    "never" => ExitRule::Never,
                    other => panic!("not a rule: {other}"),
                }
            }
            "stop_timeout" => plan.stop_timeout = duration(value),
            other => panic!("not a key of the node: {other}"),
        }
    }
    plan
}

fn job_plan(job: &str, keys: &[&str]) -> JobPlan {
    let mut plan = JobPlan::new(name(job), vec![format!("./{job}")]);
    for (key, value) in keys.iter().map(|key| pair(key)) {
        let restart = &mut plan.restart;
        match key {
            "main" => {
                plan.main = true;
                *restart = Restart::on(RestartOn::Never);
            }
            "restart" => {
                restart.on = match value {
                    "never" => RestartOn::Never,
                    "failure" => RestartOn::Failure,
                    "any" => RestartOn::Any,
                    other => panic!("not a policy: {other}"),
                }
            }
            "delay" => restart.delay = Some(duration(value)),
            "max_delay" => restart.max_delay = duration(value),
            "limit" => restart.limit = Some(value.parse().expect("a limit")),
            "within" => restart.within = Some(duration(value)),
            "start_seconds" => plan.start_seconds = duration(value),
            "exit_codes" => {
                let code = |code: &str| code.parse().expect("a code");
                plan.exit_codes = value.split(',').map(code).collect();
            }
            "stop_signal" => plan.stop.signal = value.parse().expect("a signal"),
            "stop_timeout" => plan.stop.timeout = duration(value),
            "stop_exec" => plan.stop.exec = Some(vec![value.to_owned()]),
            other => panic!("not a key of a job: {other}"),
        }
    }
    plan
}

pub(crate) fn default_node() -> NodePlan {
    NodePlan {
        name: "test".to_owned(),
        stop_timeout: Duration::from_secs(8),
        exit: ExitRule::Never,
        log_level: "info".to_owned(),
    }
}

pub(crate) fn plan(node: NodePlan, jobs: Vec<JobPlan>) -> Plan {
    Plan { node, jobs }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn pair(key: &str) -> (&str, &str) {
    key.split_once('=').unwrap_or((key, ""))
}

fn wait(word: &str) -> Wait {
    match word {
        "started" => Wait::Started,
        "backoff" => Wait::Backoff,
        "stop" => Wait::StopTimeout,
        other => panic!("not a wait: {other}"),
    }
}

fn number(word: &str) -> u64 {
    word.parse().expect("a number")
}

/// So that a transcript shows at a glance which incarnation a pid belongs to.
fn pid(incarnation: u64) -> u32 {
    100 + u32::try_from(incarnation).expect("a small incarnation")
}

fn duration(text: &str) -> Duration {
    if let Some(ms) = text.strip_suffix("ms") {
        return Duration::from_millis(number(ms));
    }
    if let Some(minutes) = text.strip_suffix('m') {
        return Duration::from_secs(60 * number(minutes));
    }
    let seconds = text.strip_suffix('s').expect("a duration");
    Duration::from_secs_f64(seconds.parse().expect("seconds"))
}
