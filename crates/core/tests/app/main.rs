//! Dialogues with an app alone, without a node or a job: `stories.txt` holds what it is told, and
//! indented beneath each line what it says. After a change on purpose,
//! `MAINSTAY_TRANSCRIPTS=write cargo test` writes the answers anew.
//!
//! The members here do what they are told: one that is started is under way, one that is stopped is
//! stopping if it has a process. Everything else is said in the story.

use mainstay_core::{
    app::{App, AppInput, AppOrder, BootSequence, Facts, Member, MemberProcess, MemberState},
    app::{AppPhase, RestReason},
    clock::Mono,
    name::Name,
    plan::{AppPlan, OnFailure, OnStartFailure, Place, StopOrder},
};
use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path, time::Duration};

#[test]
fn an_app_answers_as_it_is_written_down() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/app/stories.txt");
    let written = fs::read_to_string(&file).expect("the stories");
    let said = perform(&written);
    if std::env::var("MAINSTAY_TRANSCRIPTS").is_ok_and(|value| value == "write") {
        fs::write(&file, said).expect("the stories are written");
    } else {
        for (number, (written, said)) in written.lines().zip(said.lines()).enumerate() {
            assert_eq!(written, said, "line {}", number + 1);
        }
        assert_eq!(written, said);
    }
}

#[test]
fn apps_start_one_sequence_after_the_other() {
    let app = |text: &str, start_sequence| AppPlan { start_sequence, ..AppPlan::new(name(text)) };
    let apps = [app("late", 9), app("never", 0), app("one", 2), app("two", 2)];
    let mut boot = BootSequence::default();
    assert_eq!(boot.step(&apps, |_| false), None, "not begun");
    assert!(!boot.will_start(&apps[0]));
    boot.begin(&apps);
    assert!(boot.will_start(&apps[0]) && !boot.will_start(&apps[1]));
    assert_eq!(boot.step(&apps, |_| false), Some(vec![name("one"), name("two")]));
    assert!(boot.will_start(&apps[0]) && !boot.will_start(&apps[2]));
    assert_eq!(boot.step(&apps, |it| it.as_str() == "two"), None, "one of them is starting");
    assert_eq!(boot.step(&apps, |it| it.as_str() == "never"), Some(vec![name("late")]));
    assert_eq!(boot.step(&apps, |_| false), None, "over");
    boot.begin(&apps[1..2]);
    assert_eq!(boot.step(&apps, |_| false), None, "nothing starts by itself");
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn perform(stories: &str) -> String {
    let mut stage = Stage::new();
    let mut said = String::new();
    for line in stories.lines().filter(|line| !line.starts_with("    ")) {
        said.push_str(line);
        said.push('\n');
        if line.starts_with("# ---") {
            stage = Stage::new();
        } else if !line.trim().is_empty() && !line.starts_with('#') {
            stage.play(line);
        }
        said.push_str(&std::mem::take(&mut stage.said));
    }
    said
}

/// A job as the app sees it.
struct Played {
    name: Name,
    place: Place,
    needs: Vec<Name>,
    state: MemberState,
    process: MemberProcess,
    healthy_at: Option<Mono>,
}

impl Played {
    fn facts(&self) -> Member<'_> {
        let Played { name, place, state, process, healthy_at, .. } = self;
        Member { name, place, state: *state, process: *process, healthy_at: *healthy_at }
    }
}

struct Stage {
    app: App,
    plan: AppPlan,
    jobs: Vec<Played>,
    now: Mono,
    /// Other apps go in step with it.
    in_step: bool,
    said: String,
}

impl Stage {
    fn new() -> Stage {
        Stage {
            app: App::default(),
            plan: AppPlan::new(name("shop")),
            jobs: Vec::new(),
            now: Mono(0),
            in_step: false,
            said: String::new(),
        }
    }

    fn play(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let first = words.next().expect("a word");
        let rest: Vec<&str> = words.collect();
        match (first, &rest[..]) {
            ("app", keys) => keys.iter().for_each(|key| self.change_app(key)),
            ("job", [job, keys @ ..]) => self.add(job, keys),
            ("at", [seconds]) => {
                let seconds: u64 =
                    seconds.strip_suffix('s').and_then(|it| it.parse().ok()).expect("seconds");
                self.now = Mono(seconds * 1_000_000_000);
            }
            ("start", []) => self.tell(AppInput::Start),
            ("stop", []) => self.tell(AppInput::Stop),
            ("restart", []) => self.tell(AppInput::Restart),
            ("waves", [size]) => {
                let size = size.parse().expect("a number");
                self.tell(AppInput::RestartInWaves { size });
            }
            ("moved", []) => self.tell(AppInput::Moved),
            ("next", []) => self.tell(AppInput::Next),
            ("due", []) => self.tell(AppInput::Due),
            ("lost", jobs) => self.lose(jobs),
            ("failure", []) => {
                let failure = self.app.failure(self.jobs.iter().map(Played::facts));
                self.say(&format!("{failure:?}").to_lowercase());
            }
            ("release", [job]) => {
                let had = self.app.release(&name(job));
                self.say(if had { "(it had a reason)" } else { "(it had none)" });
            }
            ("why", []) => self.why(),
            (job, is) => self.happen(job, is),
        }
    }

    /// Their node is gone, and they with it.
    fn lose(&mut self, jobs: &[&str]) {
        let jobs: BTreeSet<Name> = jobs.iter().map(|job| name(job)).collect();
        for job in &jobs {
            self.set(job, MemberState::Ended { well: false }, MemberProcess::None);
        }
        self.tell(AppInput::Lost { jobs: &jobs });
        self.tell(AppInput::Moved);
    }

    fn change_app(&mut self, key: &str) {
        match key {
            "in_step" => self.in_step = true,
            "stop_order=reverse" => self.plan.stop_order = StopOrder::Reverse,
            "on_start_failure=stop" => self.plan.on_start_failure = OnStartFailure::Stop,
            "on_start_failure=abort" => self.plan.on_start_failure = OnStartFailure::Abort,
            "on_start_failure=continue" => self.plan.on_start_failure = OnStartFailure::Continue,
            _ => self.plan.on_failure = on_failure(key),
        }
    }

    /// A new job rests until its sequence has come.
    fn add(&mut self, job: &str, keys: &[&str]) {
        let (mut place, mut needs) = (Place::default(), Vec::new());
        for key in keys {
            match key.split_once('=') {
                Some(("seq", value)) => place.start_sequence = value.parse().expect("a number"),
                Some(("stop_seq", value)) => place.stop_sequence = value.parse().expect("a number"),
                Some(("needs", value)) => needs.push(name(value)),
                Some(_) => place.on_failure = Some(on_failure(key)),
                None if *key == "required" => place.required = true,
                None if *key == "wait_exit" => place.wait_exit = true,
                None => panic!("{key}?"),
            }
        }
        self.app.admit(name(job));
        let (state, process) = (MemberState::AtRest, MemberProcess::None);
        let healthy_at = Some(Mono(0));
        self.jobs.push(Played { name: name(job), place, needs, state, process, healthy_at });
    }

    /// Something happens to a job: its app is told as a node tells it.
    fn happen(&mut self, job: &str, is: &[&str]) {
        let job = name(job);
        let played = self.jobs.iter_mut().find(|it| it.name == job).expect("a job of the app");
        played.healthy_at = match is {
            ["up", "unhealthy"] => None,
            ["up", "young"] => Some(self.now.after(Duration::from_secs(1))),
            _ => Some(Mono(0)),
        };
        let (state, process) = match is {
            ["up"] | ["up", "unhealthy" | "young"] => (MemberState::Up, MemberProcess::Up),
            ["runs", "for", "an", "end"] => (MemberState::UnderWay, MemberProcess::HookRun),
            ["waits"] => (MemberState::UnderWay, MemberProcess::None),
            ["stopping"] => (MemberState::UnderWay, MemberProcess::Stopping),
            ["gone"] => (MemberState::AtRest, MemberProcess::None),
            ["ended", "well"] => (MemberState::Ended { well: true }, MemberProcess::None),
            ["failed"] => (MemberState::Ended { well: false }, MemberProcess::None),
            _ => panic!("{is:?}?"),
        };
        self.set(&job, state, process);
        if state == (MemberState::Ended { well: false }) {
            self.tell(AppInput::Failed { job: &job });
        }
        self.tell(AppInput::Moved);
    }

    fn set(&mut self, job: &Name, state: MemberState, process: MemberProcess) {
        let job = self.jobs.iter_mut().find(|it| it.name == *job).expect("a job of the app");
        (job.state, job.process) = (state, process);
    }

    fn tell(&mut self, input: AppInput<'_>) {
        let mut next = Some(input);
        while let Some(input) = next.take() {
            let before = shown(&self.app);
            let reasons = self.reasons();
            let orders = {
                let needed = || needed(&self.jobs);
                let facts = Facts {
                    members: self.jobs.iter().map(Played::facts).collect(),
                    needed: &needed,
                    in_step: self.in_step,
                };
                self.app.step(self.now, &self.plan, &facts, input)
            };
            let changed = reasons.into_iter().zip(self.reasons()).filter(|(a, b)| a != b);
            for (_, (job, reason)) in changed.collect::<Vec<_>>() {
                match reason {
                    Some(reason) => self.say(&format!("{job} rests: {}", word(reason))),
                    None => self.say(&format!("{job} is released")),
                }
            }
            for order in orders {
                next = self.obey(order).or(next);
            }
            let after = shown(&self.app);
            if before != after {
                self.say(&after);
            }
        }
    }

    fn obey(&mut self, order: AppOrder) -> Option<AppInput<'static>> {
        match order {
            AppOrder::Prepare { jobs } => {
                let jobs: Vec<&str> = jobs.iter().map(Name::as_str).collect();
                self.say(&format!("> prepare {}", jobs.join(" ")));
                None
            }
            AppOrder::Start { job } => {
                self.say(&format!("> start {job}"));
                if self.jobs.iter().any(|it| it.name == job && it.state != MemberState::Up) {
                    self.set(&job, MemberState::UnderWay, MemberProcess::Up);
                }
                Some(AppInput::Moved)
            }
            AppOrder::Stop { job } => {
                self.say(&format!("> stop {job}"));
                let it = self.jobs.iter_mut().find(|it| it.name == job).expect("a member");
                match (it.state, it.process) {
                    (MemberState::Ended { .. }, _) => {}
                    (_, MemberProcess::None) => it.state = MemberState::AtRest,
                    _ => (it.state, it.process) = (MemberState::UnderWay, MemberProcess::Stopping),
                }
                None
            }
            AppOrder::Restart { job } => {
                self.say(&format!("> restart {job}"));
                self.set(&job, MemberState::UnderWay, MemberProcess::Stopping);
                Some(AppInput::Moved)
            }
            AppOrder::StopWaves { job } => {
                self.say(&format!("> no more waves: {job}"));
                None
            }
            AppOrder::FailOver { job } => {
                self.say(&format!("> fail over {job}"));
                self.set(&job, MemberState::UnderWay, MemberProcess::Up);
                None
            }
            AppOrder::Wake { at } => {
                self.say(&format!("> wake at {}s", at.0 / 1_000_000_000));
                None
            }
        }
    }

    fn reasons(&self) -> Vec<(Name, Option<RestReason>)> {
        self.jobs.iter().map(|it| (it.name.clone(), self.app.reason(&it.name))).collect()
    }

    fn why(&mut self) {
        let reasons: Vec<String> = self
            .jobs
            .iter()
            .filter_map(|it| {
                Some(format!("{} rests: {}", it.name, word(self.app.reason(&it.name)?)))
            })
            .collect();
        if reasons.is_empty() {
            self.say("nobody rests because of the app");
        }
        reasons.iter().for_each(|it| self.say(it));
    }

    fn say(&mut self, line: &str) {
        writeln!(self.said, "    {line}").expect("a string");
    }
}

/// What those that have a process need, near or far.
fn needed(jobs: &[Played]) -> BTreeSet<Name> {
    let mut needed = BTreeSet::new();
    let mut open: Vec<&Played> =
        jobs.iter().filter(|it| it.process != MemberProcess::None).collect();
    while let Some(job) = open.pop() {
        for name in &job.needs {
            if needed.insert(name.clone()) {
                open.extend(jobs.iter().find(|it| it.name == *name));
            }
        }
    }
    needed
}

fn on_failure(key: &str) -> OnFailure {
    match key {
        "on_failure=continue" => OnFailure::Continue,
        "on_failure=restart-process" => OnFailure::RestartProcess,
        "on_failure=stop-app" => OnFailure::StopApp,
        "on_failure=restart-app" => OnFailure::RestartApp,
        _ => panic!("{key}?"),
    }
}

fn word(reason: RestReason) -> &'static str {
    match reason {
        RestReason::NotReached => "its sequence has not come",
        RestReason::StartAborted => "the start was aborted",
        RestReason::AppFailed => "the app failed",
    }
}

fn shown(app: &App) -> String {
    match (app.phase(), app.starting()) {
        (AppPhase::Stopped, _) => "DOWN".to_owned(),
        (AppPhase::Backoff, _) => "BACKOFF".to_owned(),
        (AppPhase::Starting, sequence) => format!("STARTING({})", sequence.unwrap_or(0)),
        (AppPhase::Running, _) => "UP".to_owned(),
        (AppPhase::Stopping, _) => "STOPPING".to_owned(),
    }
}
