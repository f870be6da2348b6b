//! What the rollout wants of sources, disks and units: done beside the loop, each answer on its way
//! back as an input.

use super::tasks::{RolloutTask, TaskPurpose};
use crate::clock;
use mainstay_core::{
    clock::Mono,
    name::Name,
    plan::{ProfilePlan, ProfileSource, RolloutPlan, ServicePlan, ServiceTarget},
    rollout::{
        LoadOutcome, Op, RequestCount, RestoreOutcome, RolloutCommand, RolloutInput, ServiceAction,
        StageFailure, Trouble,
    },
};
use mainstay_pool::{ROLLOUT, Unserved};
use mainstay_rollout::{
    service::{SignalFiles, Units, children},
    source::{Notices, Shared, Source},
    store::Store,
    switch::Switch,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
    sync::Arc,
};
use tokio::sync::{Mutex, mpsc};

/// Whoever carries out what is wanted outside the node.
#[derive(Debug)]
pub(super) struct Performers {
    pub(super) store: Store,
    switch: Switch,
    sources: BTreeMap<Name, (ProfilePlan, Arc<Mutex<Source>>)>,
    shared: Shared,
    /// Why the metric could not be published the last time.
    unpublished: Arc<Mutex<Option<Trouble>>>,
    notices: Notices,
    noticed: mpsc::UnboundedReceiver<Name>,
    pub(super) units: Arc<Units>,
    signal_files: Option<PathBuf>,
    /// Facts of the node, for templates.
    node: Arc<Value>,
    pub(super) report: mpsc::UnboundedSender<RolloutInput>,
    /// What tasks of the keeper are run for.
    pub(super) tasks: BTreeMap<RolloutTask, TaskPurpose>,
    /// What one of two instances has counted, until the other has.
    pub(super) counts: BTreeMap<Op, Result<RequestCount, Trouble>>,
}

impl Performers {
    pub(super) fn new(
        plan: &RolloutPlan,
        store: Store,
        switch: Switch,
        node: String,
        report: mpsc::UnboundedSender<RolloutInput>,
    ) -> Performers {
        let (notices, noticed) = Notices::new();
        let mut performers = Performers {
            switch,
            store,
            sources: BTreeMap::new(),
            shared: Shared::default(),
            unpublished: Arc::default(),
            notices,
            noticed,
            units: Arc::new(Units::new(None)),
            signal_files: None,
            node: Arc::new(json!({ "name": node, "host": hostname() })),
            report,
            tasks: BTreeMap::new(),
            counts: BTreeMap::new(),
        };
        performers.replan(plan);
        performers
    }

    /// Sources of another plan: those that are the same are kept with what they know.
    pub(super) fn replan(&mut self, plan: &RolloutPlan) {
        let gone = |plan_of: &ProfilePlan| !plan.profiles.contains(plan_of);
        for (name, _) in self.sources.extract_if(.., |_, (it, _)| gone(it)) {
            self.notices.unwatch(&name);
        }
        for profile in &plan.profiles {
            if self.sources.contains_key(&profile.name) {
                continue;
            }
            let source = Arc::new(Mutex::new(Source::new(profile, &self.shared)));
            self.sources.insert(profile.name.clone(), (profile.clone(), source));
            match &profile.source {
                ProfileSource::File { path } => self.notices.watch(&profile.name, path),
                ProfileSource::Http { .. }
                | ProfileSource::AppConfig { .. }
                | ProfileSource::Agent { .. } => {}
            }
        }
        if self.signal_files != plan.signal_files {
            self.signal_files.clone_from(&plan.signal_files);
            let files = plan.signal_files.as_deref().map(SignalFiles::new);
            self.units = Arc::new(Units::new(files));
        }
    }

    /// A profile that is worth asking for. May be dropped at any time.
    pub(super) async fn noticed(&mut self) -> Name {
        match self.noticed.recv().await {
            Some(profile) => profile,
            None => std::future::pending().await,
        }
    }

    /// Begins what is done beside the loop; gives back what only the node can do.
    pub(super) fn perform(
        &mut self,
        plan: &Arc<RolloutPlan>,
        command: RolloutCommand,
    ) -> Option<RolloutCommand> {
        let service = |name: &Name| plan.services.iter().find(|it| it.name == *name).cloned();
        match command {
            RolloutCommand::Load { op, profile, fresh } => self.load(op, profile, fresh),
            RolloutCommand::Store { op, profile, version, content } => {
                let store = self.store.clone();
                // Behind what tidies up, which does not know of it.
                let stored = ROLLOUT.ask(move || store.store_content(&profile, &version, &content));
                self.answer(async move {
                    let outcome = stored.await.map_err(io::Error::from).flatten();
                    let outcome = outcome.map_err(|it| Trouble(it.to_string()));
                    RolloutInput::Stored { op, outcome }
                });
            }
            RolloutCommand::Stage { op, set } => {
                let (switch, plan, node) = (self.switch.clone(), plan.clone(), self.node.clone());
                let staged = ROLLOUT.ask(move || switch.stage(&set, &plan, &node));
                self.answer(async move {
                    let late = |it: Unserved| StageFailure::Disk(Trouble(it.to_string()));
                    let outcome = staged.await.map_err(late).flatten();
                    if let Err(StageFailure::Lost { trouble, .. }) = &outcome {
                        tracing::error!("{trouble}");
                    }
                    RolloutInput::Staged { op, outcome }
                });
            }
            RolloutCommand::Switch { op, files } => {
                let switch = self.switch.clone();
                let switched = ROLLOUT.ask(move || switch.switch(&files));
                self.answer(async move {
                    let late = |it: Unserved| Trouble(it.to_string());
                    let outcome = switched.await.map_err(late).flatten();
                    RolloutInput::Switched { op, outcome }
                });
            }
            RolloutCommand::Restore { op, files } => {
                let switch = self.switch.clone();
                let names: Vec<Name> = files.iter().map(|it| it.template.clone()).collect();
                let restored = ROLLOUT.ask(move || switch.restore(&files));
                self.answer(async move {
                    let outcome = restored.await.unwrap_or_else(|late| {
                        let failed = |it: Name| (it, Trouble(late.to_string()));
                        let failed = names.into_iter().map(failed).collect();
                        RestoreOutcome { set_aside: Vec::new(), failed }
                    });
                    for (from, to) in &outcome.set_aside {
                        let (from, to) = (from.display(), to.display());
                        tracing::warn!("what somebody else has put in {from} is now {to}");
                    }
                    RolloutInput::Restored { op, outcome }
                });
            }
            RolloutCommand::Retain { versions, files } => {
                let switch = self.switch.clone();
                // In its turn: what is stored after it is not removed by it.
                let tidy = move || {
                    if let Err(trouble) = switch.retain(&versions, &files) {
                        tracing::warn!("{trouble}");
                    }
                };
                if let Err(unserved) = ROLLOUT.begin(tidy) {
                    tracing::warn!("cannot tidy up: {unserved}");
                }
            }
            RolloutCommand::Note { service, note } => tracing::warn!("service '{service}': {note}"),
            RolloutCommand::Publish { failing } => {
                let (shared, metric) = (self.shared.clone(), plan.cloudwatch.clone()?);
                let trouble = self.unpublished.clone();
                tokio::spawn(async move {
                    // One after the other, and the same trouble is told once.
                    let mut told = trouble.lock().await;
                    let trouble = shared.publish(&metric, failing).await.err();
                    if let Some(why) = trouble.as_ref().filter(|_| trouble != *told) {
                        tracing::warn!("metric '{}' is not published: {why}", metric.name);
                    }
                    *told = trouble;
                });
            }
            RolloutCommand::Inspect { op, service: name } => match service(&name)?.target {
                ServiceTarget::Unit(unit) => {
                    let (units, reload) = (self.units.clone(), service(&name)?.reload);
                    self.answer(async move {
                        let outcome = units.inspect(&unit, &reload).await;
                        let outcome = outcome.map_err(|it| Trouble(it.to_string()));
                        RolloutInput::Inspected { op, outcome }
                    });
                }
                ServiceTarget::Job(_) | ServiceTarget::Command => {
                    return Some(RolloutCommand::Inspect { op, service: name });
                }
            },
            RolloutCommand::Tell { op, service: name, action, deadline } => {
                return self.tell(service(&name)?, op, action, deadline);
            }
            RolloutCommand::Probe { op, service: name, check, target, deadline } => {
                if !self.probe(op, &service(&name)?, check, &target, deadline) {
                    let service = name;
                    return Some(RolloutCommand::Probe { op, service, check, target, deadline });
                }
            }
            command @ (RolloutCommand::Check { .. }
            | RolloutCommand::RunHook { .. }
            | RolloutCommand::Ready
            | RolloutCommand::Exit) => return Some(command),
        }
        None
    }

    fn tell(
        &mut self,
        service: ServicePlan,
        op: Op,
        action: ServiceAction,
        deadline: Mono,
    ) -> Option<RolloutCommand> {
        match (service.target, &action) {
            (
                ServiceTarget::Unit(unit),
                ServiceAction::ReloadOrRestart
                | ServiceAction::Signal(_)
                | ServiceAction::BringUp
                | ServiceAction::Start(_)
                | ServiceAction::Stop(_),
            ) => {
                let units = self.units.clone();
                self.answer(async move {
                    let left = deadline.since(clock::mono());
                    let outcome = units.tell(&unit, &action, left).await;
                    let outcome = outcome.map_err(|it| Trouble(it.to_string()));
                    RolloutInput::Told { op, outcome }
                });
                None
            }
            (ServiceTarget::Job(_) | ServiceTarget::Command, _)
            | (ServiceTarget::Unit(_), ServiceAction::Exec) => {
                Some(RolloutCommand::Tell { op, service: service.name, action, deadline })
            }
        }
    }

    fn load(&self, op: Op, profile: Name, fresh: bool) {
        let source = self.sources.get(&profile).map(|(_, source)| source.clone());
        self.answer(async move {
            let (outcome, not_before) = match source {
                Some(source) => {
                    let loaded = source.lock().await.load(fresh).await;
                    (loaded.outcome, loaded.not_before)
                }
                None => (LoadOutcome::Failed(Trouble("it is gone".to_owned())), None),
            };
            RolloutInput::Loaded { op, profile, outcome, not_before }
        });
    }

    /// The children of a job's process, read beside the loop.
    pub(super) fn read_children(
        &self,
        pid: Option<u32>,
        make: impl FnOnce(BTreeSet<u32>) -> RolloutInput + Send + 'static,
    ) {
        self.answer(async move {
            let read = move || pid.map(children).unwrap_or_default();
            make(ROLLOUT.run(read).await.unwrap_or_default())
        });
    }

    pub(super) fn answer(&self, work: impl Future<Output = RolloutInput> + Send + 'static) {
        let report = self.report.clone();
        tokio::spawn(async move {
            // Nobody listens only when the agent is gone.
            let _ = report.send(work.await);
        });
    }

    /// What a preview uses.
    pub(super) fn for_preview(&self) -> (Switch, Shared, Arc<Value>) {
        (self.switch.clone(), self.shared.clone(), self.node.clone())
    }
}

fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
