//! Dialogues with a node: `testdata/*.txt` holds what is told, and indented beneath each line what
//! the node says. After a change on purpose, `MAINSTAY_TRANSCRIPTS=write cargo test` writes the
//! answers anew, and the difference is for people to read.

use crate::{
    journaled::{journal, recorded, written},
    script::{self, Line},
};
use mainstay_core::{
    clock::{Mono, Now},
    event::{Event, Kind},
    exit::Usage,
    explain,
    job::{Job, JobSummary},
    name::Name,
    node::{Command, Held, Input, JobPreview, Node, Outcome, ReloadPreview, Request, Token, Wait},
    plan::JobPlan,
    record::Memory,
    task::{TaskKind, TaskOwner},
};
use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path, sync::Arc};

#[test]
fn the_node_answers_as_it_is_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testdata");
    let write = std::env::var("MAINSTAY_TRANSCRIPTS").is_ok_and(|value| value == "write");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("testdata")
        .map(|entry| entry.expect("entry").path())
        .collect();
    files.sort();
    assert!(!files.is_empty());
    let mut wrong = Vec::new();
    for file in files {
        let written = fs::read_to_string(&file).expect("a transcript");
        let said = perform(&written);
        if write {
            fs::write(&file, &said).expect("the transcript is written");
        } else if said != written {
            wrong.push(difference(&file, &written, &said));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn difference(file: &Path, written: &str, said: &str) -> String {
    let lines = written.lines().zip(said.lines());
    let at = lines.take_while(|(written, said)| written == said).count();
    let around = |text: &str| {
        text.lines().skip(at.saturating_sub(6)).take(16).collect::<Vec<_>>().join("\n")
    };
    let (written, said) = (around(written), around(said));
    format!("{}:{}\n--- written\n{written}\n--- said\n{said}\n", file.display(), at + 1)
}

/// The script of a transcript with the answers of today.
fn perform(transcript: &str) -> String {
    let mut stage = Stage::default();
    let mut said = String::new();
    for line in transcript.lines().filter(|line| !line.starts_with("    ")) {
        said.push_str(line);
        said.push('\n');
        if !line.trim().is_empty() && !line.starts_with('#') {
            for part in script::read(line, stage.agent_restarts) {
                stage.play(part);
            }
        } else if line.starts_with("# ---") {
            stage = Stage::default();
        }
        said.push_str(&std::mem::take(&mut stage.said));
    }
    said
}

/// One node in one story; a comment line that begins with `# ---` begins the next story.
struct Stage {
    plan: mainstay_core::plan::Plan,
    node: Option<Node>,
    /// The plan that the node began with, and what was journaled since.
    journal: (mainstay_core::plan::Plan, Memory),
    now: Mono,
    timers: BTreeMap<Token, Mono>,
    agent_restarts: u64,
    /// What the keeper was told.
    remembered: BTreeMap<Name, JobSummary>,
    said: String,
}

impl Default for Stage {
    fn default() -> Stage {
        Stage {
            plan: script::plan(script::default_node(), Vec::new()),
            node: None,
            journal: (script::plan(script::default_node(), Vec::new()), Memory::default()),
            now: Mono::default(),
            timers: BTreeMap::new(),
            agent_restarts: 0,
            remembered: BTreeMap::new(),
            said: String::new(),
        }
    }
}

impl Stage {
    fn play(&mut self, line: Line) {
        match line {
            Line::Node(plan) => self.plan.node = plan,
            Line::Job(plan) => match self.plan.jobs.iter_mut().find(|it| it.name == plan.name) {
                Some(known) => *known = Arc::new(*plan),
                None => self.plan.jobs.push(Arc::new(*plan)),
            },
            Line::App(plan) => self.plan.apps.push(plan),
            Line::Watch(plan) => self.plan.watches.push(plan),
            Line::Drop(name) => {
                self.plan.jobs.retain(|job| job.name != name);
                self.plan.watches.retain(|watch| watch.name != name);
            }
            Line::Apply => {
                let plan = self.plan.clone().into();
                self.say(Input::Request(Request::Apply { plan, preview: None }));
            }
            Line::Plan => self.preview(),
            Line::Why(job) => self.why(&job),
            Line::At(time) => self.pass_time(time),
            Line::Say(input) => self.say(input),
            Line::AgentDies => self.agent_dies(),
            Line::AgentLosesJournal => self.agent_loses_journal(),
            Line::Show => self.show(),
        }
    }

    fn pass_time(&mut self, until: Mono) {
        assert!(until >= self.now, "time goes on");
        while let Some((at, token)) = self
            .timers
            .iter()
            .map(|(token, at)| (*at, token.clone()))
            .min()
            .filter(|t| t.0 <= until)
        {
            self.timers.remove(&token);
            self.now = self.now.max(at);
            self.tell(&format!("[{} timer {}]", time(at), wait(&token)));
            self.say(Input::Timer { token });
        }
        self.now = until;
    }

    fn say(&mut self, mut input: Input) {
        if let Input::Attached { held, lost: Some(_), .. } = &mut input {
            self.remind(held);
        }
        if self.node.is_none() {
            self.journal = (self.plan.clone(), Memory::default());
        }
        let node = self.node.get_or_insert_with(|| Node::new(self.plan.clone()));
        let now = Now { mono: self.now, wall: i64::try_from(self.now.0).expect("a short story") };
        let before = (node.seq(), journal(node));
        let disabled = match &input {
            Input::Request(request) => node.disabled_after(request),
            _ => None,
        };
        let outcome = node.step(now, input);
        if let Some(jobs) = &disabled {
            assert_eq!(node.disabled(), *jobs, "what was kept is what came of it");
        }
        assert_honest(&before, node, &outcome);
        outcome.records.iter().for_each(|record| self.journal.1.take(written(record)));
        outcome.events.iter().for_each(|event| self.journal.1.told(event.seq));
        if let Some(jobs) = disabled {
            let jobs: Vec<String> = jobs.iter().map(ToString::to_string).collect();
            self.tell(format!("first keep disabled {}", jobs.join(" ")).trim_end());
        }
        let (remember, commands): (Vec<Command>, Vec<Command>) = outcome
            .commands
            .into_iter()
            .partition(|command| matches!(command, Command::Remember { .. }));
        remember.into_iter().for_each(|command| self.remember(command));
        let refused_or_silent = outcome.events.is_empty() && commands.is_empty();
        for event in &outcome.events {
            self.tell(&event_line(event));
        }
        for command in commands {
            self.tell(&format!("> {}", command_line(&command)));
            if let Command::SetTimer { token, at } = command {
                self.timers.insert(token, at);
            }
        }
        match outcome.answer {
            Some(Ok(())) if refused_or_silent => self.tell("= ok"),
            Some(Ok(())) => {}
            Some(Err(refusal)) => self.tell(&format!("= refused: {refusal}")),
            None if refused_or_silent && outcome.records.is_empty() => self.tell("(nothing)"),
            None if refused_or_silent => self.tell("(noted)"),
            None => {}
        }
    }

    /// Through the journal's own form: what it does not hold is lost.
    fn agent_dies(&mut self) {
        if self.node.is_none() {
            self.journal = (self.plan.clone(), Memory::default());
        }
        let (plan, mut memory) = self.journal.clone();
        let plan = memory.plan_in_force(Some(plan)).expect("a plan");
        self.node = Some(memory.restore(plan));
        self.timers = BTreeMap::new();
        self.agent_restarts += 1;
    }

    /// The keeper remembers what it was told, and the number of the last event.
    fn agent_loses_journal(&mut self) {
        let seq = self.node.as_ref().map_or(0, Node::seq);
        let mut memory = Memory::default();
        memory.told(seq);
        self.node = Some(memory.clone().restore(self.plan.clone()));
        self.journal = (self.plan.clone(), memory);
        self.timers = BTreeMap::new();
        self.agent_restarts += 1;
    }

    fn remember(&mut self, command: Command) {
        match command {
            Command::Remember { job, summary: Some(summary) } => {
                self.remembered.insert(job, *summary);
            }
            Command::Remember { job, summary: None } => drop(self.remembered.remove(&job)),
            other => panic!("not to be remembered: {other:?}"),
        }
    }

    fn remind(&self, held: &mut Vec<Held>) {
        for (job, summary) in &self.remembered {
            let summary = Some(summary.clone());
            match held.iter_mut().find(|held| held.job == *job) {
                Some(held) => held.summary = summary,
                None => {
                    let (job, highest, live, pending) = (job.clone(), 0, None, false);
                    let open = false;
                    held.push(Held { job, highest, live, pending, open, summary });
                }
            }
        }
    }

    fn show(&mut self) {
        let node = self.node.as_ref().expect("a node");
        let mut lines = vec![format!("node {:?}", node.phase()).to_lowercase()];
        lines.extend(node.jobs().map(|(plan, job)| show(plan, job)));
        lines.extend(node.apps().map(|it| {
            format!("app {} {} failure {}", it.plan.name, word(&it.phase), word(&it.failure))
        }));
        lines.iter().for_each(|line| self.tell(line));
    }

    fn preview(&mut self) {
        let now = Now { mono: self.now, wall: 0 };
        match self.node.as_ref().expect("a node").preview(now, &self.plan) {
            Err(refusal) => self.tell(&format!("= refused: {refusal}")),
            Ok(ReloadPreview { jobs, ends, .. }) => {
                for JobPreview { change, effect, because, waits, .. } in jobs {
                    let because = because.as_ref().map(explain::moved_by);
                    let because = because.map_or_else(String::new, |it| format!(" ({it})"));
                    let waits = waits.iter().map(|it| explain::waiting(&change.job, it));
                    let waits: String =
                        waits.map(|it| format!(" for {} {}", it.source, it.event)).collect();
                    self.tell(&format!("{}: {}{waits}{because}", change.job, word(&effect)));
                }
                if ends {
                    self.tell("the node ends");
                }
            }
        }
    }

    fn why(&mut self, job: &Name) {
        let waiting = self.node.as_ref().expect("a node").blockers().of(job.as_str());
        let waiting: Vec<_> = waiting.iter().map(|it| explain::waiting(job, it)).collect();
        if waiting.is_empty() {
            self.tell("for nothing");
        }
        for it in waiting {
            let reason = it.reason.map_or_else(String::new, |reason| format!(" (never: {reason})"));
            self.tell(&format!("for {} {}{reason}", it.source, it.event));
        }
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.said, "    {line}").expect("a string");
    }
}

/// What holds in every step of every story.
fn assert_honest(before: &(u64, BTreeMap<Name, String>), node: &Node, outcome: &Outcome) {
    let (seq, jobs) = before;
    for (event, expected) in outcome.events.iter().zip(seq + 1..) {
        assert_eq!(event.seq, expected, "events are numbered one by one");
    }
    let after = journal(node);
    let changed: Vec<&Name> = node
        .jobs()
        .map(|(plan, _)| &plan.name)
        .filter(|name| jobs.get(*name) != after.get(*name))
        .collect();
    assert_eq!(recorded(outcome), changed, "records are exact");
}

fn show(plan: &JobPlan, job: &Job) -> String {
    let pid = job.pid().map_or_else(|| "-".to_owned(), |pid| pid.to_string());
    let exit = job.last_exit().map_or_else(|| "-".to_owned(), ToString::to_string);
    let fine = if job.is_as_desired() { "" } else { ", not as desired" };
    format!(
        "{} {} desired {} health {} pid {pid} incarnation {} restarts {} last exit: {exit}{}{fine}",
        plan.name,
        word(&job.phase()),
        word(&job.desired()),
        word(&job.health()),
        job.incarnation(),
        job.restarts(),
        used(job.last_usage()),
    )
}

/// Only said where it is known.
fn used(usage: Option<Usage>) -> String {
    let said = |it: Usage| format!(", used {:?} {:?} {}", it.cpu_user, it.cpu_system, it.max_rss);
    usage.map(said).unwrap_or_default()
}

fn event_line(event: &Event) -> String {
    let source = event.source.as_str();
    match &event.kind {
        Kind::State { from, to, pid, incarnation } => {
            let pid = pid.map_or_else(String::new, |pid| format!(" pid {pid}"));
            format!("{source} {} -> {} #{incarnation}{pid}", word(from), word(to))
        }
        Kind::ExitSuccess { incarnation, exit, usage } => {
            format!("{source} exitSuccess #{incarnation} {exit}{}", used(*usage))
        }
        Kind::ExitFailed { incarnation, exit, usage } => {
            format!("{source} exitFailed #{incarnation} {exit}{}", used(*usage))
        }
        Kind::Signal { signal } => format!("{source} signal {signal}"),
        Kind::AgentRestarted { restarts } => format!("{source} agentRestarted {restarts}"),
        Kind::Upgraded { from, to } => format!("{source} upgraded {from} to {to}"),
        Kind::LogGap { lines } => format!("{source} logGap {lines}"),
        Kind::TaskEnded { task, exit, .. } => format!("{source} taskEnded {task}: {exit}"),
        Kind::JournalLost { reason, unknown } => {
            let unknown: Vec<&str> = unknown.iter().map(Name::as_str).collect();
            format!("{source} journalLost ({reason}) {}", unknown.join(" ")).trim_end().to_owned()
        }
        Kind::StrayKilled { pid, command } => format!("{source} strayKilled {pid} {command}"),
        Kind::NodeJoined { node } => format!("{source} nodeJoined {node}"),
        Kind::NodeLost { node } => format!("{source} nodeLost {node}"),
        Kind::NodeIsolated { node } => format!("{source} nodeIsolated {node}"),
        Kind::NodeRefused { node, run } => format!("{source} nodeRefused {node} {run}"),
        Kind::MasterChanged { master, term } => format!("{source} masterChanged {master} {term}"),
        Kind::FleetState { state } => format!("{source} fleetState {state}"),
        Kind::Placed { node } => format!("{source} placed {node}"),
        Kind::NotPlaced { reason } => format!("{source} notPlaced {reason}"),
        Kind::Conflict { nodes } => {
            let nodes: Vec<&str> = nodes.iter().map(Name::as_str).collect();
            format!("{source} conflict {}", nodes.join(" "))
        }
        Kind::WavesStopped { app } => format!("{source} wavesStopped {app}"),
        Kind::RolledBack { failure, .. } => format!("{source} rolledBack {failure}"),
        Kind::UpdateFailed { failure, .. } => format!("{source} updateFailed {failure}"),
        Kind::RolloutFailed { failure, .. } => format!("{source} rolloutFailed {failure}"),
        Kind::Startup => format!("{source} startup"),
        Kind::Healthy => format!("{source} healthy"),
        Kind::Unhealthy => format!("{source} unhealthy"),
        Kind::Changed { instances, version } => {
            let count = instances.map_or_else(String::new, |count| format!(" {count}"));
            let version = version.as_ref().map_or_else(String::new, |it| format!(" {it}"));
            format!("{source} changed{count}{version}")
        }
        Kind::Stopping => format!("{source} stopping"),
        Kind::Stopped { incarnation, exit, usage, killed } => {
            let exit = exit.as_ref().map_or_else(String::new, |exit| format!(" {exit}"));
            let killed = killed.map_or_else(String::new, |why| format!(" killed: {}", word(&why)));
            format!("{source} stopped #{incarnation}{exit}{}{killed}", used(*usage))
        }
        Kind::TimerExpired => format!("{source} timerExpired"),
        Kind::EnterMaintenance => format!("{source} enterMaintenance"),
        Kind::ExitMaintenance => format!("{source} exitMaintenance"),
        Kind::Check { name, passing, output } => {
            let verdict = if *passing { "passing" } else { "failing" };
            format!("{source} check {name} {verdict} {output}").trim_end().to_owned()
        }
        Kind::Enabled => format!("{source} enabled"),
        Kind::Disabled => format!("{source} disabled"),
        Kind::Reloaded { added, changed, removed } => {
            let names = |names: &[Name]| {
                names.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
            };
            format!(
                "{source} reloaded added={} changed={} removed={}",
                names(added),
                names(changed),
                names(removed)
            )
        }
    }
}

fn command_line(command: &Command) -> String {
    match command {
        Command::Spawn { job, incarnation, args } => {
            format!("spawn {job} #{incarnation} {}", args.join(" ")).trim_end().to_owned()
        }
        Command::Probe { job, incarnation, check, deadline } => {
            format!("probe {job} #{incarnation} {check} until {}", time(*deadline))
        }
        Command::ArmCron { job } => format!("cron {job}"),
        Command::Announce { job, standing, note } => {
            format!("announce {job} {} {note}", word(standing)).trim_end().to_owned()
        }
        Command::Withdraw { job } => format!("withdraw {job}"),
        Command::Rest { job, incarnation } => format!("rest {job} #{incarnation}"),
        Command::Forget { job } => format!("forget {job}"),
        Command::Applied => "applied".to_owned(),
        Command::Remember { job, .. } => format!("remember {job}"),
        Command::WriteInstances { watch } => format!("write instances {watch}"),
        Command::Stop { job, incarnation, signal, to } => {
            format!("stop {job} #{incarnation} {signal} {}", word(to))
        }
        Command::Kill { job, incarnation } => format!("kill {job} #{incarnation}"),
        Command::Signal { job, incarnation, signal, to } => {
            format!("signal {job} #{incarnation} {signal} {}", word(to))
        }
        Command::RunTask { id, deadline, .. } => match &id.owner {
            TaskOwner::Job { job, incarnation, kind } => {
                let what = match kind {
                    TaskKind::StopExec => "stop.exec",
                    TaskKind::Reload => "reload.exec",
                    TaskKind::Check(_) => "check.exec",
                };
                format!("{what} {job} #{incarnation} until {}", time(*deadline))
            }
            TaskOwner::Node { purpose } => format!("task {purpose} until {}", time(*deadline)),
            // The agent's affair: none is journaled.
            TaskOwner::Rollout { op, .. } => format!("task {op} of the rollout"),
        },
        Command::SetTimer { token, at } => format!("timer {} at {}", wait(token), time(*at)),
        Command::Exit { again: true, .. } => "begin anew".to_owned(),
        Command::Exit { code, .. } => format!("exit {code}"),
    }
}

fn wait(token: &Token) -> String {
    match token {
        Token::Job { job, incarnation, wait } => {
            let wait = match wait {
                Wait::Started => "started".to_owned(),
                Wait::Backoff => "backoff".to_owned(),
                Wait::StopTimeout => "stop".to_owned(),
                Wait::When => "when".to_owned(),
                Wait::Interval => "interval".to_owned(),
                Wait::Longest => "longest".to_owned(),
                Wait::Check(check) => format!("check {check}"),
                Wait::Recovery => "recovery".to_owned(),
            };
            format!("{job} #{incarnation} {wait}")
        }
        Token::App { app } => format!("app {app}"),
        Token::ShutdownDeadline => "shutdown".to_owned(),
        Token::ShutdownOverdue => "overdue".to_owned(),
    }
}

fn time(at: Mono) -> String {
    let ms = at.0 / 1_000_000;
    if ms.is_multiple_of(1000) { format!("{}s", ms / 1000) } else { format!("{ms}ms") }
}

fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("a word").trim_matches('"').to_owned()
}
