//! A rollout in a small world: sources, a disk, files and services that do what they are told, and
//! an agent that may die between any two steps. Contents are single bytes: a profile serves one, a
//! file has the sum of those it is made of.

mod plan;
mod services;

pub use plan::{Draft, name};
pub use services::{Instances, SimService};

use mainstay_core::{
    clock::{Mono, Now},
    name::Name,
    plan::RolloutPlan,
    rollout::{
        Content, Digest, LoadOutcome, OldFile, RestoreOutcome, Rollout, RolloutCommand,
        RolloutInput, RolloutKept, RolloutPhase, RolloutRefusal, RolloutRequest, StageFailure,
        StageSet, StagedFile, StagedSet, Trouble, Version,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    hash::{Hash, Hasher},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

pub const SECOND: u64 = 1_000_000_000;

/// What can be seen: all that outlives an agent, and what users can change.
#[derive(Debug, Clone, PartialEq)]
pub struct RolloutWorld {
    pub plan: Arc<RolloutPlan>,
    /// `None`: the agent is dead.
    pub machine: Option<Rollout>,
    pub kept: RolloutKept,
    /// By template.
    pub files: BTreeMap<Name, u8>,
    /// What is kept beside the record, by place.
    copies: BTreeMap<PathBuf, u8>,
    pub sources: BTreeMap<Name, SimSource>,
    pub services: BTreeMap<Name, SimService>,
    /// Contents that no template can be made of, that no check lets pass, that no service can use.
    pub unrenderable: BTreeSet<u8>,
    pub unfit: BTreeSet<u8>,
    /// A disk that takes nothing.
    pub full_disk: bool,
    /// Contents that were stored and are gone; and a disk that loses all that it takes.
    pub lost: BTreeSet<(Name, u8)>,
    pub loses_all: bool,
    /// Commands that nobody has carried out yet.
    pub open: VecDeque<RolloutCommand>,
    pub now: u64,
    wake: Option<Mono>,
    pub is_ready: bool,
    /// The values of the metric.
    pub published: Vec<bool>,
    pub has_exited: bool,
    /// What has happened, for stories.
    pub told: Option<Vec<String>>,
    /// The numbers under which `on_failure` has run.
    pub hooks: Vec<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SimSource {
    /// `None`: it does not answer.
    pub serves: Option<u8>,
    pub label: Option<String>,
    /// The secrets that it is served with are those after so many rotations; 0: it has none.
    pub secrets: u8,
    /// What it has served to this agent.
    known: Option<(u8, u8)>,
    pub asked: u64,
    /// It wants to be left alone so long.
    pub not_before: Option<Duration>,
}

impl RolloutWorld {
    #[must_use]
    pub fn new(plan: RolloutPlan) -> RolloutWorld {
        let source =
            |name: &Name| (name.clone(), SimSource { serves: Some(1), ..SimSource::default() });
        let sources = plan.profiles.iter().map(|it| source(&it.name)).collect();
        let service = |name: &Name| (name.clone(), SimService::default());
        let services = plan.services.iter().map(|it| service(&it.name)).collect();
        RolloutWorld {
            plan: Arc::new(plan),
            machine: None,
            kept: RolloutKept::default(),
            files: BTreeMap::new(),
            copies: BTreeMap::new(),
            sources,
            services,
            unrenderable: BTreeSet::new(),
            unfit: BTreeSet::new(),
            full_disk: false,
            lost: BTreeSet::new(),
            loses_all: false,
            open: VecDeque::new(),
            now: SECOND,
            wake: None,
            is_ready: false,
            published: Vec::new(),
            has_exited: false,
            told: None,
            hooks: Vec::new(),
        }
    }

    /// Another agent, or another run.
    pub fn start(&mut self, takes_over: bool) {
        self.machine = Some(Rollout::new(self.plan.clone(), self.kept.clone()));
        self.open.clear();
        self.sources.values_mut().for_each(|source| source.known = None);
        self.step(RolloutInput::Start { takes_over });
    }

    /// What was not carried out never will be.
    pub fn kill(&mut self) {
        self.machine = None;
        self.open.clear();
        self.wake = None;
    }

    pub fn step(&mut self, input: RolloutInput) -> Option<Result<(), RolloutRefusal>> {
        let now = Now { mono: Mono(self.now), wall: i64::try_from(self.now).unwrap_or(i64::MAX) };
        let machine = self.machine.as_mut()?;
        let outcome = machine.step(now, input);
        self.kept = machine.kept().clone();
        self.wake = outcome.wake;
        self.open.extend(outcome.commands);
        outcome.answer
    }

    pub fn ask(&mut self, request: RolloutRequest) -> Result<(), RolloutRefusal> {
        self.step(RolloutInput::Asked(request)).unwrap_or(Ok(()))
    }

    #[must_use]
    pub fn phase(&self) -> RolloutPhase {
        self.machine.as_ref().map_or(RolloutPhase::Starting, Rollout::phase)
    }

    /// When the machine wants to hear that time has passed.
    #[must_use]
    pub fn wakes_at(&self) -> Option<u64> {
        self.wake.map(|wake| wake.0.max(self.now))
    }

    pub fn tick(&mut self) {
        self.now = self.wakes_at().unwrap_or(self.now);
        self.step(RolloutInput::Tick);
    }

    /// All that follows, without letting time pass.
    pub fn run(&mut self) {
        for _ in 0..10_000 {
            if !self.carry_out() {
                return;
            }
        }
        panic!("it never comes to rest: {:?}", self.machine);
    }

    /// All that follows until so many seconds have passed.
    pub fn run_for(&mut self, seconds: u64) {
        let end = self.now + seconds * SECOND;
        self.run();
        while let Some(at) = self.wakes_at().filter(|at| *at <= end) {
            self.now = at;
            self.step(RolloutInput::Tick);
            self.run();
        }
        self.now = end;
    }

    fn tell(&mut self, what: impl FnOnce() -> String) {
        if let Some(told) = &mut self.told {
            told.push(what());
        }
    }

    /// Carries out the oldest command. `false`: there is none.
    pub fn carry_out(&mut self) -> bool {
        let Some(command) = self.open.pop_front() else { return false };
        if let Some(input) = self.perform(command) {
            self.step(input);
        }
        true
    }

    fn perform(&mut self, command: RolloutCommand) -> Option<RolloutInput> {
        Some(match command {
            RolloutCommand::Load { op, profile, fresh } => {
                self.tell(|| format!("load {profile}"));
                let source = self.sources.entry(profile.clone()).or_default();
                source.asked += 1;
                let not_before = source.not_before;
                let outcome = source.answer(fresh);
                RolloutInput::Loaded { op, profile, outcome, not_before }
            }
            RolloutCommand::Store { op, profile, version, .. } => {
                let outcome = self.disk();
                if outcome.is_ok() && !self.loses_all {
                    self.lost.remove(&(profile, version.digest.0[0]));
                }
                RolloutInput::Stored { op, outcome }
            }
            RolloutCommand::Stage { op, set } => {
                let outcome = self.stage(&set);
                RolloutInput::Staged { op, outcome }
            }
            RolloutCommand::Check { op, template, staged } => {
                let content = self.copies.get(&staged).copied().unwrap_or(0);
                self.tell(|| format!("check {template}"));
                let outcome = match self.unfit.contains(&content) {
                    true => Err(Trouble("not fit".to_owned())),
                    false => Ok(()),
                };
                RolloutInput::Checked { op, outcome }
            }
            RolloutCommand::Switch { op, files } => {
                files.iter().for_each(|file| self.put(file));
                RolloutInput::Switched { op, outcome: self.disk() }
            }
            RolloutCommand::Restore { op, files } => {
                files.iter().for_each(|file| self.put_back(file));
                RolloutInput::Restored { op, outcome: RestoreOutcome::default() }
            }
            RolloutCommand::RunHook { op, failure } => {
                self.tell(|| format!("hook {}", failure.number));
                self.hooks.push(failure.number);
                RolloutInput::HookDone { op, outcome: Ok(()) }
            }
            RolloutCommand::Retain { files, .. } => {
                let needed: BTreeSet<&PathBuf> = files
                    .iter()
                    .flat_map(|it| it.old.iter().map(|old| &old.copy).chain([&it.staged]))
                    .collect();
                self.copies.retain(|place, _| needed.contains(place));
                return None;
            }
            RolloutCommand::Note { service, note } => {
                self.tell(|| format!("note of {service}: {note}"));
                return None;
            }
            RolloutCommand::Publish { failing } => {
                self.published.push(failing);
                return None;
            }
            RolloutCommand::Ready => {
                self.is_ready = true;
                return None;
            }
            RolloutCommand::Exit => {
                self.has_exited = true;
                return None;
            }
            command @ (RolloutCommand::Inspect { .. }
            | RolloutCommand::Tell { .. }
            | RolloutCommand::Probe { .. }) => return self.perform_on_service(command),
        })
    }

    /// As `carry_out`, by an agent that dies after the first file of a set.
    pub fn die_between_files(&mut self) {
        if let Some(RolloutCommand::Switch { files, .. }) = self.open.front().cloned()
            && let Some(file) = files.first()
        {
            self.put(file);
        } else if let Some(RolloutCommand::Restore { files, .. }) = self.open.front().cloned()
            && let Some(file) = files.first()
        {
            self.put_back(file);
        }
        self.kill();
    }

    fn disk(&self) -> Result<(), Trouble> {
        match self.full_disk {
            true => Err(Trouble("no space left on device".to_owned())),
            false => Ok(()),
        }
    }

    /// What a template is with these versions.
    #[must_use]
    pub fn rendered(&self, template: &Name, version: impl Fn(&Name) -> Option<u8>) -> u8 {
        let template = self.plan.templates.iter().find(|it| it.name == *template);
        let profiles = template.map_or(&[][..], |it| &it.profiles);
        profiles.iter().filter_map(version).fold(0, u8::wrapping_add)
    }

    fn stage(&mut self, set: &StageSet) -> Result<StagedSet, StageFailure> {
        let mut staged = StagedSet::default();
        let version = |name: &Name| Some(set.profiles.get(name)?.digest.0[0]);
        let is_lost = |(name, version): &(&Name, &Version)| {
            self.lost.contains(&((*name).clone(), version.digest.0[0]))
        };
        if let Some((profile, version)) = set.profiles.iter().find(is_lost) {
            let (profile, version) = (profile.clone(), Box::new(version.clone()));
            let trouble = Trouble(format!("the content of profile '{profile}' is not there"));
            return Err(StageFailure::Lost { profile, version, trouble });
        }
        let contents: Vec<(Name, u8)> = set
            .templates
            .iter()
            .map(|it| (it.template.clone(), self.rendered(&it.template, version)))
            .collect();
        if let Some((template, _)) = contents.iter().find(|it| self.unrenderable.contains(&it.1)) {
            let (template, trouble) =
                (template.clone(), Trouble(format!("template '{template}', line 1")));
            return Err(StageFailure::Render { template, trouble });
        }
        self.disk().map_err(StageFailure::Disk)?;
        for ((template, new), asked) in contents.into_iter().zip(&set.templates) {
            let old = self.files.get(&template).copied();
            if old == Some(new) {
                staged.unchanged.insert(template, digest(new));
                continue;
            }
            let edited = old.zip(asked.expected).is_some_and(|(old, known)| known != digest(old));
            if edited && !set.force {
                let trouble = Trouble("edited".to_owned());
                return Err(StageFailure::Edited { templates: vec![template], trouble });
            }
            let place = |kind: &str, content| PathBuf::from(format!("{kind}/{template}/{content}"));
            let copy = old.map(|old| OldFile { digest: digest(old), copy: place("old", old) });
            if let (Some(copy), Some(old)) = (&copy, old) {
                self.copies.insert(copy.copy.clone(), old);
            }
            self.copies.insert(place("new", new), new);
            staged.changed.push(StagedFile {
                destination: PathBuf::from(template.as_str()),
                staged: place("new", new),
                new: digest(new),
                old: copy,
                unconfirmed: None,
                template,
            });
        }
        Ok(staged)
    }

    fn put(&mut self, file: &StagedFile) {
        let content = *self.copies.get(&file.staged).expect("what is switched was staged");
        assert_eq!(digest(content), file.new, "what is switched is what was recorded");
        if self.files.insert(file.template.clone(), content) != Some(content) {
            self.tell(|| format!("file {} = {content}", file.template));
        }
    }

    fn put_back(&mut self, file: &StagedFile) {
        let (template, old) = (&file.template, &file.old);
        let before = match old {
            None => self.files.remove(template),
            Some(OldFile { copy, .. }) => {
                let content = *self.copies.get(copy).expect("what goes back was copied");
                self.files.insert(template.clone(), content)
            }
        };
        let after = self.files.get(template).copied();
        if before != after {
            self.tell(|| format!("file {template} back to {after:?}"));
        }
    }

    /// Every file is what the applied versions make of it.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let applied =
            |name: &Name| Some(self.kept.profiles.get(name)?.applied.as_ref()?.digest.0[0]);
        self.files.iter().all(|(template, content)| self.rendered(template, applied) == *content)
    }
}

impl SimSource {
    fn answer(&mut self, fresh: bool) -> LoadOutcome {
        let Some(serves) = self.serves else {
            return LoadOutcome::Failed(Trouble("connection refused".to_owned()));
        };
        let all = (serves, self.secrets);
        if self.known.replace(all) == Some(all) && !fresh {
            return LoadOutcome::Unchanged;
        }
        let secrets = (self.secrets > 0).then(|| digest(self.secrets));
        let (label, digest) = (self.label.clone(), digest(serves));
        let version = Version { label, digest, secrets, rotation: 0 };
        let content_type = "text/plain".to_owned();
        let content = Content { content_type, body: vec![serves], secrets: BTreeMap::new() };
        LoadOutcome::Served { version, content: Arc::new(content) }
    }
}

/// As the digest of one byte.
#[must_use]
pub fn digest(content: u8) -> Digest {
    Digest([content; 32])
}

impl Hash for RolloutWorld {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (&self.machine, &self.kept, &self.files, &self.copies, &self.sources).hash(hasher);
        (&self.services, self.full_disk, self.now, self.wake, &self.hooks).hash(hasher);
        (self.is_ready, self.has_exited, &self.lost, self.loses_all).hash(hasher);
        for command in &self.open {
            format!("{command:?}").hash(hasher);
        }
    }
}
