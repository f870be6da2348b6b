//! Apps on one node: jobs that start and stop together, in order.
//!
//! ```text
//!   DOWN ──start──► STARTING(sequence) ──all sequences done──► UP
//!    ▲                 │ a required job failed: abort ─────────►│
//!    └── all down ── STOPPING ◄──────── stop ───────────────────┘
//! ```
//!
//! A job of an app rests until it is its turn (or a user starts it by itself); its `when` then gates
//! it. A sequence is done when each of its jobs runs, waits for nothing but its trigger, or has
//! ended as expected (`wait_exit`: only that); jobs with sequence 0 are left alone. At boot the apps
//! start one `start_sequence` after the other, each waiting until the one before has started or
//! failed to.
//!
//! When a job of an app that is up ends for good and was not meant to, `on_failure` says what
//! follows. To restart a process then waits like any back-off; an app that fails within ten seconds
//! of having come up is stopped instead of restarted, since it would only fail again.

use super::{Node, Refusal, state::NodeStage};
use crate::{
    clock::Mono,
    job::{Desired, Job, JobInput, Phase, Resting, STABLE},
    name::Name,
    outbox::Outbox,
    plan::{AppPlan, JobPlan, OnFailure, OnStartFailure},
};
use serde::{Deserialize, Serialize};

/// As observers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AppPhase {
    Stopped,
    Starting,
    Running,
    Stopping,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AppCourse {
    #[default]
    Down,
    Starting {
        sequence: u32,
    },
    Up {
        since: Mono,
    },
    Stopping {
        /// It is started again when it is down.
        again: bool,
        /// One of its jobs has failed, and nobody asked for the stop.
        #[serde(default)]
        failed: bool,
    },
}

impl Node {
    /// In the order of the file.
    pub fn apps(&self) -> impl Iterator<Item = (&AppPlan, AppPhase)> {
        self.plan.apps.iter().map(|app| {
            let phase = match self.course_of(&app.name) {
                AppCourse::Down => AppPhase::Stopped,
                AppCourse::Starting { .. } => AppPhase::Starting,
                AppCourse::Up { .. } => AppPhase::Running,
                AppCourse::Stopping { .. } => AppPhase::Stopping,
            };
            (app, phase)
        })
    }

    pub(super) fn app_asked(
        &mut self,
        out: &mut Outbox,
        app: &Name,
        f: fn(&mut Node, &mut Outbox, &Name),
    ) -> Result<(), Refusal> {
        if self.plan.app(app.as_str()).is_none() {
            return Err(Refusal::NoSuchApp(app.to_string()));
        }
        if self.state.shutting().is_some() {
            return Err(Refusal::NodeStopping);
        }
        f(self, out, app);
        Ok(())
    }

    pub(super) fn start_app(&mut self, out: &mut Outbox, app: &Name) {
        match self.course_of(app) {
            AppCourse::Down | AppCourse::Up { .. } => self.begin_sequence(out, app, 0),
            AppCourse::Starting { .. } => {}
            AppCourse::Stopping { failed, .. } => {
                self.set_course(app, AppCourse::Stopping { again: true, failed });
            }
        }
    }

    pub(super) fn stop_app(&mut self, out: &mut Outbox, app: &Name) {
        self.bring_down(out, app, false, false);
    }

    pub(super) fn restart_app(&mut self, out: &mut Outbox, app: &Name) {
        self.bring_down(out, app, true, false);
    }

    fn bring_down(&mut self, out: &mut Outbox, app: &Name, again: bool, failed: bool) {
        self.set_course(app, AppCourse::Stopping { again, failed });
        for at in self.members(app) {
            let up = self.jobs.get(at).is_some_and(Job::holds);
            if !up {
                self.step_job(out, at, JobInput::StoppedWithApp { failed });
            }
        }
        self.go_on_with_app(out, app);
    }

    /// The apps that start by themselves, lowest sequence first.
    pub(super) fn start_apps(&mut self, out: &mut Outbox) {
        self.state.apps_from = self.plan.apps.iter().any(|app| app.start_sequence > 0).then_some(0);
        self.go_on_with_boot(out);
    }

    /// What may go on because something has moved.
    pub(super) fn go_on_with_apps(&mut self, out: &mut Outbox) {
        match self.state.stage {
            NodeStage::Starting | NodeStage::Stopping(_) => return,
            NodeStage::Running => {}
        }
        for app in self.plan.apps.iter().map(|app| app.name.clone()).collect::<Vec<_>>() {
            self.go_on_with_app(out, &app);
        }
        self.go_on_with_boot(out);
    }

    fn go_on_with_boot(&mut self, out: &mut Outbox) {
        while let Some(current) = self.state.apps_from {
            let starting = self.plan.apps.iter().any(|app| {
                let busy = matches!(self.course_of(&app.name), AppCourse::Starting { .. });
                app.start_sequence == current && current > 0 && busy
            });
            if starting {
                return;
            }
            let later = self.plan.apps.iter().map(|app| app.start_sequence);
            self.state.apps_from = later.filter(|sequence| *sequence > current).min();
            let due = self.state.apps_from;
            let due: Vec<Name> = self
                .plan
                .apps
                .iter()
                .filter(|app| Some(app.start_sequence) == due)
                .map(|app| app.name.clone())
                .collect();
            for app in due {
                self.start_app(out, &app);
            }
        }
    }

    fn go_on_with_app(&mut self, out: &mut Outbox, app: &Name) {
        match self.course_of(app) {
            AppCourse::Down | AppCourse::Up { .. } => {}
            AppCourse::Starting { sequence } => self.go_on_starting(out, app, sequence),
            AppCourse::Stopping { again, failed } => {
                self.go_on_bringing_down(out, app, again, failed);
            }
        }
    }

    /// The next sequence after this one: its jobs have their turn.
    fn begin_sequence(&mut self, out: &mut Outbox, app: &Name, after: u32) {
        let members = self.members(app);
        let sequence = |at: &usize| self.plan.jobs.get(*at).map(|job| job.place.start_sequence);
        let next = members.iter().filter_map(sequence).filter(|it| *it > after).min();
        let Some(next) = next else {
            return self.set_course(app, AppCourse::Up { since: out.now.mono });
        };
        let due: Vec<usize> =
            members.iter().copied().filter(|at| sequence(at) == Some(next)).collect();
        self.set_course(app, AppCourse::Starting { sequence: next });
        for at in due {
            self.step_job(out, at, JobInput::Ordered);
            self.try_launch(out, at);
        }
        self.go_on_starting(out, app, next);
    }

    fn go_on_starting(&mut self, out: &mut Outbox, app: &Name, sequence: u32) {
        let mut under_way = false;
        let mut failed = false;
        for at in self.members(app) {
            let (Some(plan), Some(job)) = (self.plan.jobs.get(at), self.jobs.get(at)) else {
                continue;
            };
            if plan.place.start_sequence == sequence {
                match progress(plan, job) {
                    Progress::Done => {}
                    Progress::UnderWay => under_way = true,
                    Progress::Failed => failed |= plan.place.required,
                }
            }
        }
        let rule = self.plan.app(app.as_str()).map(|app| app.on_start_failure);
        match (failed, rule) {
            (true, Some(OnStartFailure::Stop)) => self.bring_down(out, app, false, true),
            (true, Some(OnStartFailure::Abort)) => {
                for at in self.members(app) {
                    self.step_job(out, at, JobInput::TurnNeverComes);
                }
                self.set_course(app, AppCourse::Up { since: out.now.mono });
            }
            (true, Some(OnStartFailure::Continue) | None) | (false, _) => {
                if !under_way {
                    self.begin_sequence(out, app, sequence);
                }
            }
        }
    }

    fn go_on_bringing_down(&mut self, out: &mut Outbox, app: &Name, again: bool, failed: bool) {
        let members = self.members(app);
        for at in self.next_to_stop(&members) {
            self.step_job(out, at, JobInput::StoppedWithApp { failed });
        }
        if !members.iter().any(|at| self.jobs.get(*at).is_some_and(Job::holds)) {
            self.set_course(app, AppCourse::Down);
            if again {
                self.start_app(out, app);
            }
        }
    }

    /// A job has come to another phase: has its app lost it?
    pub(super) fn notice_failure(&mut self, out: &mut Outbox, at: usize) {
        let (Some(plan), Some(job)) = (self.plan.jobs.get(at), self.jobs.get(at)) else { return };
        let Some(app) = self.plan.app_of(plan) else { return };
        let since = match self.course_of(&app.name) {
            AppCourse::Up { since } => since,
            AppCourse::Starting { sequence } if plan.place.start_sequence < sequence => {
                out.now.mono
            }
            AppCourse::Down | AppCourse::Starting { .. } | AppCourse::Stopping { .. } => return,
        };
        if job.ended_for_good() != Some(false) || self.state.shutting().is_some() {
            return;
        }
        let stable = out.now.mono.since(since) >= STABLE;
        let (name, rule) = (app.name.clone(), plan.place.on_failure.unwrap_or(app.on_failure));
        match rule {
            OnFailure::Continue => {}
            OnFailure::RestartProcess => {
                self.step_job(out, at, JobInput::TryAgain);
            }
            OnFailure::RestartApp if stable => self.bring_down(out, &name, true, true),
            OnFailure::RestartApp | OnFailure::StopApp => {
                self.bring_down(out, &name, false, true);
            }
        }
    }

    /// A new plan: new apps start, those that are gone are forgotten, and a new job of an app that
    /// is up starts with it.
    pub(super) fn change_apps(&mut self, out: &mut Outbox, before: &[AppPlan]) {
        let apps: Vec<AppPlan> = self.plan.apps.clone();
        self.state.apps.retain(|name, _| apps.iter().any(|app| app.name == *name));
        for app in &apps {
            let known = before.iter().any(|other| other.name == app.name);
            if !known && app.start_sequence > 0 {
                self.start_app(out, &app.name);
            }
        }
    }

    /// A job that is new in the plan has its turn at once if its app has started.
    pub(super) fn is_ordered_at_once(&self, job: &JobPlan) -> bool {
        match (&job.app, self.plan.app_of(job)) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(app), Some(_)) => match self.course_of(app) {
                AppCourse::Up { .. } => job.place.start_sequence > 0,
                AppCourse::Down | AppCourse::Starting { .. } | AppCourse::Stopping { .. } => false,
            },
        }
    }

    /// The sequence in which its app will come to it, while the app is on its way there.
    pub(super) fn awaited_turn(&self, at: usize) -> Option<u32> {
        let (plan, job) = (self.plan.jobs.get(at)?, self.jobs.get(at)?);
        let (app, sequence) = (self.plan.app_of(plan)?, plan.place.start_sequence);
        let comes = match self.course_of(&app.name) {
            AppCourse::Starting { sequence: now } => sequence > now,
            AppCourse::Down => {
                let later = |from| app.start_sequence > from;
                sequence > 0 && self.state.apps_from.is_some_and(later)
            }
            AppCourse::Stopping { again, .. } => sequence > 0 && again,
            AppCourse::Up { .. } => false,
        };
        (comes && job.resting() == Some(Resting::Turn)).then_some(sequence)
    }

    /// The jobs that an app which is starting waits for, and their sequence.
    #[must_use]
    pub fn starting(&self, app: &str) -> Option<(u32, Vec<&Name>)> {
        let app = self.plan.app(app)?;
        let AppCourse::Starting { sequence } = self.course_of(&app.name) else { return None };
        let holds_up = |(plan, job): &(&JobPlan, &Job)| {
            let mate = plan.app.as_ref() == Some(&app.name);
            mate && plan.place.start_sequence == sequence
                && matches!(progress(plan, job), Progress::UnderWay)
        };
        Some((sequence, self.jobs().filter(holds_up).map(|(plan, _)| &plan.name).collect()))
    }

    /// What is on its way out of the plan belongs to no app any more.
    fn members(&self, app: &Name) -> Vec<usize> {
        let jobs = self.jobs().enumerate();
        let mate =
            |(plan, job): &(&JobPlan, &Job)| plan.app.as_ref() == Some(app) && !job.is_leaving();
        jobs.filter(|(_, it)| mate(it)).map(|(at, _)| at).collect()
    }

    fn course_of(&self, app: &Name) -> AppCourse {
        self.state.apps.get(app).copied().unwrap_or_default()
    }

    fn set_course(&mut self, app: &Name, stage: AppCourse) {
        self.state.apps.insert(app.clone(), stage);
    }
}

enum Progress {
    Done,
    UnderWay,
    Failed,
}

fn progress(plan: &JobPlan, job: &Job) -> Progress {
    match (job.ended_for_good(), job.desired()) {
        (Some(true), _) => Progress::Done,
        (Some(false), _) => Progress::Failed,
        // Somebody else wants it at rest.
        (None, Desired::Disabled) => Progress::Done,
        (None, Desired::Rest) if job.phase() == Phase::Stopped => Progress::Done,
        (None, Desired::Run | Desired::Rest) => {
            if job.is_as_desired() && !plan.place.wait_exit {
                Progress::Done
            } else {
                Progress::UnderWay
            }
        }
    }
}
