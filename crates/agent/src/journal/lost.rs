//! Whatever becomes of a journal, nobody starts what nobody wanted: each byte of one flipped, each
//! prefix of it, none at all, against a keeper that remembers what it was told.

use super::{found::Found, recovery::Recovery, tests::Dir, *};
use crate::{clock, reload::options::Options};
use mainstay_config::Context;
use mainstay_core::{
    exit::{Asked, Exit},
    job::{Desired, Job, JobSummary, Phase},
    name::Name,
    node::{Command, Held, Input, Node, Outcome, Request},
    signal::Signal,
};
use mainstay_import::PlanSource;
use mainstay_rollout::renderer::Renderer;
use mainstay_wire::{
    link::{HeldJob, LiveProcess, NodeSummary, TreeKind, Welcome},
    run_dir::Dirs,
    state::{ContainerMetrics, ContainerState},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

const RUN: &str = "0123456789abcdef";
const CONFIG: &str = r#"
    [node]
    exit = "never"
    [jobs.web]
    exec = "web"
    [jobs.once]
    exec = "once"
    [jobs.never]
    exec = "never"
    restart = "never"
    [jobs.stopped]
    exec = "stopped"
    [jobs.off]
    exec = "off"
    [jobs.after]
    exec = "after"
    when = { source = "once", once = "exitSuccess" }
    [jobs.waits]
    exec = "waits"
    when = { source = "never", once = "exitSuccess" }
    [jobs.hourly]
    exec = "hourly"
    when = { interval = "1h" }
    [jobs.backing]
    exec = "backing"
    restart = { on = "any", delay = "1h" }
"#;

/// A node, its journal, and what a keeper has of it.
struct LostJournalStory {
    dir: Dir,
    options: Options,
    node: Node,
    journal: Journal,
    highest: BTreeMap<Name, u64>,
    live: BTreeSet<Name>,
    summaries: BTreeMap<Name, JobSummary>,
}

fn context() -> Context {
    Context { host_name: "host".into(), unlimited: true, ..Context::default() }
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

impl LostJournalStory {
    fn begin(at: &str) -> LostJournalStory {
        let dir = Dir::new(at);
        let file = dir.0.join("mainstay.toml");
        fs::write(&file, CONFIG).expect("written");
        let dirs = Dirs { run: dir.0.clone(), state: dir.0.join("state") };
        let (source, renderer) = (PlanSource::Config(Some(file)), Renderer::of_this_program());
        let options = Options { dirs, source, context, renderer };
        let welcome = welcome(&dir, None, Vec::new());
        let Recovery { journal, node, first, lost, .. } =
            Recovery::begin(&options, &welcome, Found::read_now(&options.dirs.run))
                .expect("a configuration");
        assert!(first && lost.is_none(), "a run that has not begun has nothing to lose");
        let (highest, live, summaries) = Default::default();
        LostJournalStory { dir, options, node, journal, highest, live, summaries }
    }

    /// As the agent does, and the keeper that it talks to.
    fn step(&mut self, input: Input) {
        let Outcome { events, records, commands, .. } = self.node.step(clock::now(), input);
        let (taken, upgrade) = (None, None);
        let change = Change { events: &events, records: &records, taken, upgrade };
        let written = self.journal.append(&change, || unreachable!("a short story"));
        written.expect("there is room");
        for command in commands {
            match command {
                Command::Spawn { job, incarnation, .. } => {
                    self.highest.insert(job.clone(), incarnation);
                    self.live.insert(job);
                }
                Command::Remember { job, summary: Some(summary) } => {
                    self.summaries.insert(job, *summary);
                }
                Command::Remember { job, summary: None } => drop(self.summaries.remove(&job)),
                _ => {}
            }
        }
    }

    fn spawned(&mut self, job: &str) {
        let (job, pid) = (name(job), 7);
        let incarnation = self.highest[&job];
        self.step(Input::Spawned { job, incarnation, pid });
    }

    fn ends(&mut self, job: &str, exit: Exit, asked: Asked) {
        let (job, usage) = (name(job), None);
        let incarnation = self.highest[&job];
        self.live.remove(&job);
        self.step(Input::Exited { job, incarnation, exit, usage, asked });
    }

    fn told(at: &str) -> LostJournalStory {
        let mut story = LostJournalStory::begin(at);
        story.step(Input::Boot);
        let term = || Exit::Signal { signal: Signal::TERM, oom: false };
        for job in ["web", "once", "never", "stopped", "off", "hourly", "backing"] {
            story.spawned(job);
        }
        story.ends("once", Exit::Code { code: 0 }, Asked::None);
        story.spawned("after");
        story.ends("after", Exit::Code { code: 0 }, Asked::None);
        story.ends("never", Exit::Code { code: 3 }, Asked::None);
        story.step(Input::Request(Request::Stop { job: name("stopped") }));
        story.ends("stopped", term(), Asked::Stop);
        story.ends("hourly", Exit::Code { code: 0 }, Asked::None);
        story.step(Input::Request(Request::Restart { jobs: vec![name("web")], args: None }));
        story.ends("web", term(), Asked::Stop);
        story.spawned("web");
        story.step(Input::Request(Request::Disable { job: name("off") }));
        story.ends("off", term(), Asked::Stop);
        story.ends("backing", Exit::Code { code: 1 }, Asked::None);
        story
    }

    fn held(&self) -> Vec<HeldJob> {
        let names = self.highest.keys().chain(self.summaries.keys()).collect::<BTreeSet<_>>();
        let job = |name: &Name| {
            let highest = self.highest.get(name).copied().unwrap_or(0);
            let live = self.live.contains(name).then(|| LiveProcess {
                incarnation: highest,
                pid: 7,
                tree: TreeKind::Group,
                unenforced: Vec::new(),
                spawned: true,
                notified: BTreeMap::new(),
                settings: None,
            });
            let (job, open) = (name.clone(), live.is_some());
            HeldJob { job, highest, live, open, summary: self.summaries.get(name).cloned() }
        };
        names.into_iter().map(job).collect()
    }

    /// A new agent with this journal: the node as it goes on, and what it wants done.
    fn next_agent(&self, journal: Option<&[u8]>) -> (Node, bool, Vec<Command>) {
        let (seq, phase) = (self.node.seq(), self.node.phase());
        let told = NodeSummary { seq, phase, again: false, held_until: None };
        let (node, lost, Outcome { events, commands, .. }) =
            self.attach(journal, welcome(&self.dir, Some(told), self.held()));
        let first = events.first().map(|event| event.seq);
        assert_eq!(first, Some(self.node.seq() + 1), "no number is given twice");
        (node, lost, commands)
    }

    fn attach(&self, journal: Option<&[u8]>, mut welcome: Welcome) -> (Node, bool, Outcome) {
        let path = self.dir.0.join(FILE);
        match journal {
            Some(bytes) => fs::write(&path, bytes).expect("written"),
            None => fs::remove_file(&path).expect("it was there"),
        }
        let recovery = Recovery::begin(&self.options, &welcome, Found::read_now(&self.dir.0))
            .expect("a configuration");
        let Recovery { mut node, lost, first, .. } = recovery;
        assert!(!first);
        if lost.is_some() {
            state_files::recall(&mut welcome);
        }
        let held = welcome.jobs.into_iter().map(|it| Held {
            job: it.job,
            highest: it.highest,
            live: it.live.map(|live| (live.incarnation, live.pid)),
            pending: false,
            open: it.open,
            summary: it.summary,
        });
        let (held, was_lost, upgraded) = (held.collect(), lost.is_some(), Vec::new());
        let attached = Input::Attached { held, agent_restarts: 1, upgraded, lost };
        let outcome = node.step(clock::now(), attached);
        (node, was_lost, outcome)
    }

    /// The state files that a keeper would have written.
    fn write_states(&self) {
        for (job, JobSummary { desired, exit, .. }) in &self.summaries {
            let Some(exit) = exit else { continue };
            let dir = self.dir.0.join("jobs").join(job.as_str());
            fs::create_dir_all(&dir).expect("a directory");
            let incarnation = self.highest.get(job).copied();
            let down = ContainerState::down(0, exit, ContainerMetrics::default());
            let state = ContainerState { incarnation, desired: Some(*desired), ..down };
            fs::write(dir.join("state"), state.to_json()).expect("written");
        }
    }

    /// Nothing is started that nobody wanted, and nothing is stopped.
    fn assert_kept(&self, journal: Option<&[u8]>, what: &str) -> bool {
        let (node, lost, commands) = self.next_agent(journal);
        for command in &commands {
            match command {
                // It was to come back anyway.
                Command::Spawn { job, .. } if job.as_str() == "backing" => {}
                Command::Spawn { job, .. } => panic!("{what}: {job} is started"),
                Command::Stop { job, .. } | Command::Kill { job, .. } => {
                    panic!("{what}: {job} is stopped")
                }
                _ => {}
            }
        }
        let state = |job: &str| node.job(job).map(|it| (it.phase(), it.desired()));
        for (plan, job) in self.node.jobs() {
            let job = (job.phase(), job.desired());
            let name = plan.name.as_str();
            if name != "backing" {
                assert_eq!(state(name), Some(job), "{what}: {name}");
            }
        }
        assert_eq!(node.job("never").and_then(Job::last_exit), Some(&Exit::Code { code: 3 }));
        assert_eq!(node.journal_loss().is_some(), lost);
        lost
    }
}

fn welcome(dir: &Dir, told: Option<NodeSummary>, jobs: Vec<HeldJob>) -> Welcome {
    Welcome {
        format: Format::OURS,
        run: RUN.into(),
        run_dir: dir.0.clone(),
        state_dir: dir.0.join("state"),
        agent_restarts: u64::from(told.is_some()),
        upgraded: Vec::new(),
        jobs,
        records: Vec::new(),
        signals: Vec::new(),
        asked: Vec::new(),
        told,
    }
}

#[test]
fn a_whole_journal_is_not_lost() {
    let story = LostJournalStory::told("lost-none");
    let journal = story.dir.journal();
    assert!(!story.assert_kept(Some(&journal), "whole"));
}

#[test]
fn a_journal_that_is_gone_is_told_and_survived() {
    let story = LostJournalStory::told("lost-gone");
    assert!(story.assert_kept(None, "gone"));
    let (node, _, _) = story.next_agent(Some(b""));
    let loss = node.journal_loss().expect("told");
    let named: Vec<&str> = loss.unknown.iter().map(Name::as_str).collect();
    assert_eq!(named, ["once", "never", "stopped", "off", "after", "hourly", "backing"]);
    assert_eq!(node.job("waits").map(Job::phase), Some(Phase::Stopped));
    assert_eq!(node.job("off").map(Job::desired), Some(Desired::Disabled));
}

#[test]
fn state_files_say_what_was_wanted_where_the_keeper_was_never_told() {
    let story = LostJournalStory::told("lost-states");
    story.write_states();
    let unknowing = story.held().into_iter().map(|held| HeldJob { summary: None, ..held });
    // Of one of them it has no memory at all.
    let jobs: Vec<HeldJob> = unknowing.filter(|it| it.job.as_str() != "never").collect();
    let (node, lost, outcome) = story.attach(None, welcome(&story.dir, None, jobs));
    assert!(lost);
    let rest = ["once", "never", "stopped", "off", "after"];
    for command in &outcome.commands {
        if let Command::Spawn { job, .. } = command {
            assert!(!rest.contains(&job.as_str()), "{job} is started");
        }
    }
    let desired = |job: &str| node.job(job).map(Job::desired);
    for job in ["once", "never", "stopped", "after"] {
        assert_eq!(desired(job), story.node.job(job).map(Job::desired), "{job}");
    }
    assert_eq!(desired("off"), Some(Desired::Disabled));
    assert_eq!(node.job("never").and_then(Job::last_exit), Some(&Exit::Code { code: 3 }));
}

/// All of them take their time: `MAINSTAY_EVERY_BYTE=1` looks at each, else some are looked at, in
/// every line and with every bit.
fn places(length: usize) -> impl Iterator<Item = usize> {
    let every = std::env::var_os("MAINSTAY_EVERY_BYTE").is_some();
    (0..length).step_by(if every { 1 } else { 37 })
}

#[test]
fn every_prefix_of_a_journal_starts_nothing_that_nobody_wanted() {
    let story = LostJournalStory::told("lost-prefix");
    let journal = story.dir.journal();
    for length in places(journal.len()) {
        let lost = story.assert_kept(Some(&journal[..length]), &format!("prefix {length}"));
        assert!(lost, "a prefix of {length} bytes lacks the end");
    }
}

#[test]
fn every_byte_of_a_journal_flipped_starts_nothing_that_nobody_wanted() {
    let story = LostJournalStory::told("lost-flip");
    let journal = story.dir.journal();
    for at in places(journal.len()) {
        let mut flipped = journal.clone();
        flipped[at] ^= 1 << (at % 8);
        let lost = story.assert_kept(Some(&flipped), &format!("byte {at}"));
        assert!(lost, "byte {at} is damaged");
    }
}
