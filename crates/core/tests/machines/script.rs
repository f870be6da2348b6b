//! The language of the transcripts: one line is one input, told at a time.
//!
//! ```text
//! node exit=main stop_timeout=8s          the plan, before anything else
//! job web main restart=any delay=1s       keys as in a configuration file, shortened
//! boot
//! at 200ms exited web 1 code 1            waits that are over by then end first
//! spawned web 2
//! exited web 2 signal KILL asked stop
//! exited web 2 code 0 used 1.5s 200ms 4096       CPU time of its own and of the kernel, bytes
//! done web 2 code 0                       its stop.exec has ended
//! timer web 2 stop                        a wait ends, whatever was asked for
//! start web | stop web | kill web | restart web | signal web HUP | shutdown
//! restart all web db                      in one request
//! signalled TERM                          the node itself received it
//! agent dies                              what is not in the journal is lost
//! agent loses journal                     the next one goes by what the keeper remembers (lost …)
//! attached web=2:live db=1                the next agent: highest incarnation, and if it lives
//! job web once=db:healthy each=global:SIGHUP interval=1s cron=@daily when_timeout=5s while=db:stop
//! job web check=name,interval=1s,timeout=1s,start=5s,delay=5s,rise=2,fall=2,notify   timeout=1m reload=HUP
//! app shop start=1 stop=2 on_start_failure=abort on_failure=stop-app
//! job web app=shop seq=2 stop_seq=1 required wait_exit on_failure=restart-app
//! checked web 1 0 pass text | notified web 1 ready watchdog every=3s | cron web
//! start web now args -v -x | disable web | enable web | reload web | maintenance on
//! start-app shop | stop-app shop | restart-app shop
//! watch cache | instances cache a b       a watch, and an answer of service discovery
//! job web advertise=warning | withdrawn web
//! drop web                                out of the plan that the next `apply` brings
//! plan                                    what the next `apply` will come to
//! apply                                   the plan with all `node` and `job` lines so far
//! task certificates | task ended certificates 1 code 0      of the node itself
//! show                                    what an observer sees
//! why web                                 what it waits for
//! ```

use mainstay_core::{
    clock::Mono,
    discovery::{Instance, Standing},
    event::EventName,
    exit::{Asked, Exit, Usage},
    name::Name,
    node::{Held, Input, LostJournal, NodePhase, Request, Token, Wait},
    plan::{
        Advertise, AppPlan, Awaited, Check, Condition, Cron, DelayFrom, ExitRule, JobPlan,
        NodePlan, OnFailure, OnLoss, OnStartFailure, Plan, Probe, Reload, Restart, RestartOn,
        SignalTarget, SourceRef, StopOrder, Trigger, WatchPlan, Watched, While,
    },
    task::{TaskId, TaskKind, TaskOutcome, TaskOwner, TaskSpec},
};
use std::time::Duration;

pub(crate) enum Line {
    Node(NodePlan),
    Job(Box<JobPlan>),
    App(AppPlan),
    Watch(WatchPlan),
    Drop(Name),
    Plan,
    Apply,
    Why(Name),
    At(Mono),
    Say(Input),
    AgentDies,
    AgentLosesJournal,
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
        ["app", app, keys @ ..] => Line::App(app_plan(app, keys)),
        ["watch", watch] => Line::Watch(watch_plan(watch)),
        ["drop", job] => Line::Drop(name(job)),
        ["plan"] => Line::Plan,
        ["apply"] => Line::Apply,
        ["why", job] => Line::Why(name(job)),
        ["agent", "dies"] => Line::AgentDies,
        ["agent", "loses", "journal"] => Line::AgentLosesJournal,
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
            lost: None,
        },
        ["lost", held @ ..] => Input::Attached {
            held: held.iter().map(|word| self::held(word)).collect(),
            agent_restarts,
            upgraded: Vec::new(),
            lost: Some(LostJournal {
                reason: "it is missing".to_owned(),
                phase: NodePhase::Running,
            }),
        },
        ["upgraded", from, to, held @ ..] => Input::Attached {
            held: held.iter().map(|word| self::held(word)).collect(),
            agent_restarts,
            upgraded: vec![((*from).to_owned(), (*to).to_owned())],
            lost: None,
        },
        ["spawned", job, n] => {
            Input::Spawned { job: name(job), incarnation: number(n), pid: pid(number(n)) }
        }
        ["exited", job, n, how @ ..] => {
            let (how, usage) = usage(how);
            let (exit, asked) = exit(how);
            Input::Exited { job: name(job), incarnation: number(n), exit, usage, asked }
        }
        ["done", job, n, how @ ..] => {
            task_done(name(job), number(n), TaskKind::StopExec, exit(how).0)
        }
        ["timer", "overdue"] => Input::Timer { token: Token::ShutdownOverdue },
        ["timer", "shutdown"] => Input::Timer { token: Token::ShutdownDeadline },
        ["timer", job, n, wait] => {
            let token =
                Token::Job { job: name(job), incarnation: number(n), wait: self::wait(wait) };
            Input::Timer { token }
        }
        ["reloaded", job, n, how @ ..] => {
            task_done(name(job), number(n), TaskKind::Reload, exit(how).0)
        }
        ["checked", job, n, check, answer, output @ ..] => Input::Checked {
            job: name(job),
            incarnation: number(n),
            check: usize::try_from(number(check)).expect("a place"),
            passed: *answer == "pass",
            output: output.join(" "),
        },
        ["notified", job, n, what @ ..] => Input::Notified {
            job: name(job),
            incarnation: number(n),
            ready: what.contains(&"ready"),
            watchdog: what.contains(&"watchdog"),
            watchdog_every: what.iter().find_map(|word| word.strip_prefix("every=")).map(duration),
        },
        ["instances", watch, all @ ..] => Input::Instances {
            watch: name(watch),
            instances: all.iter().map(|id| instance(id)).collect(),
        },
        ["withdrawn", job] => Input::Withdrawn { job: name(job) },
        ["cron", job] => Input::CronDue { job: name(job) },
        ["start", job, how @ ..] => {
            let now = how.first() == Some(&"now");
            let args = how.iter().position(|word| *word == "args");
            let args = args.map(|at| how[at + 1..].iter().map(|it| (*it).to_owned()).collect());
            request(Request::Start { jobs: vec![name(job)], args, now })
        }
        ["disable", job] => request(Request::Disable { job: name(job) }),
        ["enable", job] => request(Request::Enable { job: name(job) }),
        ["reload", job] => request(Request::Reload { job: name(job) }),
        ["maintenance", on] => request(Request::Maintenance { on: *on == "on" }),
        ["start-app", app] => request(Request::StartApp { app: name(app) }),
        ["stop-app", app] => request(Request::StopApp { app: name(app) }),
        ["restart-app", app] => request(Request::RestartApp { app: name(app), wave: None }),
        ["restart-app", app, "wave", size] => {
            let wave = Some(size.parse().expect("a number"));
            request(Request::RestartApp { app: name(app), wave })
        }
        ["stop", job] => request(Request::Stop { job: name(job) }),
        ["stop", "all", jobs @ ..] => {
            request(Request::StopInOrder { jobs: jobs.iter().map(|job| name(job)).collect() })
        }
        ["kill", job] => request(Request::Kill { job: name(job) }),
        ["restart", job] => request(Request::Restart { jobs: vec![name(job)], args: None }),
        ["restart", "all", jobs @ ..] => {
            let jobs = jobs.iter().map(|job| name(job)).collect();
            request(Request::Restart { jobs, args: None })
        }
        ["restart", job, "args", args @ ..] => {
            let args = Some(args.iter().map(|it| (*it).to_owned()).collect());
            request(Request::Restart { jobs: vec![name(job)], args })
        }
        ["signal", job, signal] => request(Request::Signal {
            job: name(job),
            signal: signal.parse().expect("a signal"),
            to: SignalTarget::Leader,
        }),
        ["shutdown"] => request(Request::Shutdown),
        ["begin-anew"] => request(Request::BeginAnew),
        ["signalled", signal] => Input::Signalled { signal: signal.parse().expect("a signal") },
        ["loggap", job, lines] => Input::LogGap { job: name(job), lines: number(lines) },
        ["task", purpose] => Input::Request(Request::RunTask {
            purpose: (*purpose).to_owned(),
            timeout: Duration::from_secs(30),
            task: Box::new(TaskSpec { exec: vec!["true".to_owned()], ..TaskSpec::default() }),
        }),
        ["task", "ended", purpose, n, how @ ..] => {
            let owner = TaskOwner::Node { purpose: (*purpose).to_owned() };
            let outcome =
                TaskOutcome { exit: exit(how).0, output: String::new(), truncated: false };
            Input::TaskDone { id: TaskId { number: number(n), owner }, outcome }
        }
        ["stray", pid, command] => Input::StrayKilled {
            pid: u32::try_from(number(pid)).expect("a pid"),
            command: (*command).to_owned(),
        },
        other => panic!("not a line of a script: {other:?}"),
    }
}

fn usage<'a, 'b>(how: &'a [&'b str]) -> (&'a [&'b str], Option<Usage>) {
    let [how @ .., "used", user, system, bytes] = how else { return (how, None) };
    let (cpu_user, cpu_system, max_rss) = (duration(user), duration(system), number(bytes));
    (how, Some(Usage { cpu_user, cpu_system, max_rss }))
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
    let (job, what) = word.split_once('=').expect("job=highest[:live|:pending|:open]");
    let (highest, how) = what.split_once(':').unwrap_or((what, "gone"));
    let highest = number(highest);
    let (live, pending, open) = match how {
        "live" => (Some((highest, pid(highest))), false, true),
        "pending" => (None, true, true),
        "open" => (None, false, true),
        "gone" => (None, false, false),
        other => panic!("not a way to be held: {other}"),
    };
    Held { job: name(job), highest, live, pending, open, summary: None }
}

fn node_plan(keys: &[&str]) -> NodePlan {
    let mut plan = default_node();
    for (key, value) in keys.iter().map(|key| pair(key)) {
        match key {
            "exit" => {
                plan.exit = match value {
                    "main" => ExitRule::Main,
                    "all" => ExitRule::All,
                    "any" => ExitRule::Any,
                    "any-failure" => ExitRule::AnyFailure,
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
            "exit_on_failure" => plan.exit_on_failure = true,
            "start_retries" => plan.start_retries = Some(value.parse().expect("a number")),
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
            "from" => {
                restart.from = match value {
                    "start" => DelayFrom::Start,
                    other => panic!("not where a delay begins: {other}"),
                };
            }
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
            "exec" => plan.exec = vec![value.to_owned()],
            "once" => plan.when.once.push(condition(value)),
            "each" => {
                let mut conditions = match plan.when.trigger.take() {
                    Some(Trigger::Each(conditions)) => conditions,
                    Some(Trigger::Interval(_) | Trigger::Cron(_)) | None => Vec::new(),
                };
                conditions.push(condition(value));
                plan.when.trigger = Some(Trigger::Each(conditions));
                restart.on = RestartOn::Never;
            }
            "interval" => {
                plan.when.trigger = Some(Trigger::Interval(duration(value)));
                restart.on = RestartOn::Never;
            }
            "cron" => {
                let cron = Cron { expression: value.to_owned(), tz: None };
                plan.when.trigger = Some(Trigger::Cron(cron));
                restart.on = RestartOn::Never;
            }
            "when_timeout" => plan.when.timeout = Some(duration(value)),
            "while" => {
                let (source, loss) = value.split_once(':').expect("source:on_loss");
                let on_loss = match loss {
                    "stop" => OnLoss::Stop,
                    "restart" => OnLoss::Restart,
                    "keep" => OnLoss::Keep,
                    other => panic!("not a way to lose: {other}"),
                };
                plan.follows = Some(While { source: self::source(source), on_loss });
            }
            "advertise" => {
                let mut advertise = Advertise::new(job);
                advertise.port = 80;
                advertise.initial_status = match value {
                    "" => None,
                    "warning" => Some(Standing::Warning),
                    "critical" => Some(Standing::Critical),
                    tag => {
                        advertise.tags.push(tag.to_owned());
                        None
                    }
                };
                plan.advertise = Some(Box::new(advertise));
            }
            "check" => plan.checks.push(check(value)),
            "timeout" => plan.timeout = Some(duration(value)),
            "reload" => plan.reload = Some(Reload::Signal(value.parse().expect("a signal"))),
            "reload_exec" => plan.reload = Some(Reload::Exec(vec![value.to_owned()])),
            "app" => plan.app = Some(name(value)),
            "seq" => plan.place.start_sequence = value.parse().expect("a sequence"),
            "stop_seq" => plan.place.stop_sequence = value.parse().expect("a sequence"),
            "required" => plan.place.required = true,
            "wait_exit" => plan.place.wait_exit = true,
            "on_failure" => plan.place.on_failure = Some(on_failure(value)),
            other => panic!("not a key of a job: {other}"),
        }
    }
    plan
}

fn watch_plan(watch: &str) -> WatchPlan {
    let service = Watched::Service { service: watch.to_owned(), tag: None, dc: None };
    let (interval, debounce) = (WatchPlan::INTERVAL, WatchPlan::DEBOUNCE);
    WatchPlan { name: name(watch), of: service, interval, debounce }
}

fn instance(id: &str) -> Instance {
    Instance {
        id: id.to_owned(),
        name: "s".to_owned(),
        address: "10.0.0.1".to_owned(),
        port: 80,
        tags: Vec::new(),
        meta: std::collections::BTreeMap::new(),
        node: String::new(),
    }
}

fn app_plan(app: &str, keys: &[&str]) -> AppPlan {
    let mut plan = AppPlan::new(name(app));
    for (key, value) in keys.iter().map(|key| pair(key)) {
        match key {
            "start" => plan.start_sequence = value.parse().expect("a sequence"),
            "stop" => plan.stop_sequence = value.parse().expect("a sequence"),
            "reverse" => plan.stop_order = StopOrder::Reverse,
            "on_start_failure" => {
                plan.on_start_failure = match value {
                    "abort" => OnStartFailure::Abort,
                    "stop" => OnStartFailure::Stop,
                    "continue" => OnStartFailure::Continue,
                    other => panic!("not a way: {other}"),
                }
            }
            "on_failure" => plan.on_failure = on_failure(value),
            other => panic!("not a key of an app: {other}"),
        }
    }
    plan
}

fn on_failure(word: &str) -> OnFailure {
    match word {
        "continue" => OnFailure::Continue,
        "restart-process" => OnFailure::RestartProcess,
        "stop-app" => OnFailure::StopApp,
        "restart-app" => OnFailure::RestartApp,
        other => panic!("not a way: {other}"),
    }
}

fn check(text: &str) -> Check {
    let mut words = text.split(',');
    let name = words.next().expect("a name").to_owned();
    let mut check = Check::new(name, Probe::Tcp("127.0.0.1:80".to_owned()));
    for (key, value) in words.map(pair) {
        match key {
            "interval" => (check.interval, check.timeout) = (duration(value), duration(value)),
            "timeout" => check.timeout = duration(value),
            "start" => check.start_period = duration(value),
            "delay" => check.delay = duration(value),
            "rise" => check.rise = value.parse().expect("a number"),
            "fall" => check.fall = value.parse().expect("a number"),
            "notify" => check.probe = Probe::Notify,
            "watchdog" => check.watchdog = Some(duration(value)),
            "fd" => check.probe = Probe::Fd(3),
            other => panic!("not a key of a check: {other}"),
        }
    }
    check
}

pub(crate) fn condition(text: &str) -> Condition {
    let (source, event) = text.split_once(':').expect("source:event");
    let event = match EventName::find(event).filter(|it| it.can_be_awaited()) {
        Some(name) => Awaited::Event(name),
        None => Awaited::Signal { signal: event.parse().expect("an event") },
    };
    Condition { source: self::source(source), event }
}

fn source(text: &str) -> SourceRef {
    match text.strip_prefix("watch.") {
        Some(watch) => SourceRef::Watch(name(watch)),
        None if text == "global" => SourceRef::Node,
        None => SourceRef::Job(name(text)),
    }
}

pub(crate) fn default_node() -> NodePlan {
    NodePlan {
        name: "test".to_owned(),
        stop_timeout: Duration::from_secs(8),
        exit: ExitRule::Never,
        log_level: "info".to_owned(),
        machine: None,
    }
}

pub(crate) fn plan(node: NodePlan, jobs: Vec<JobPlan>) -> Plan {
    Plan::new(node, jobs)
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
        "when" => Wait::When,
        "interval" => Wait::Interval,
        "longest" => Wait::Longest,
        "check" => Wait::Check(0),
        "recovery" => Wait::Recovery,
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

/// The end of the task that the job has for this.
fn task_done(job: Name, incarnation: u64, kind: TaskKind, exit: Exit) -> Input {
    let id = TaskId { number: 0, owner: TaskOwner::Job { job, incarnation, kind } };
    Input::TaskDone { id, outcome: TaskOutcome { exit, output: String::new(), truncated: false } }
}
