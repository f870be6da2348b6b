//! One service in an update, or on its way back: told, confirmed, baked.
//!
//! ```text
//!            not running: confirmed; on the way back, one that has died is brought up
//!  Inspecting ──────────────────────────────────────────────────────────────────► done
//!      │ running                                                                   ▲
//!      ▼            each passes            time is over         flip-flop          │
//!   Telling ──► Probing ⇄ Resting ──► Baking ──► Comparing ──► StoppingOld ────────┘
//!      │             │ at the deadline    │ any fails   │             │
//!      └─────────────┴────────────────────┴─────────────┴─────────────┴──► failed; flip-flop:
//!                                                                Undoing stops the new instance
//! ```
//!
//! Each stage waits for one answer, or for a time. An answer to something else comes too late.

use super::{
    InstanceNumber, Op, ProbeOutcome, ProbeTarget, RequestCount, RolloutCommand, RolloutStep,
    ServiceAction, ServiceFacts, ServiceRecord, ToldState, Trouble,
};
use crate::{
    clock::Mono,
    name::Name,
    plan::{HealthComparison, ReloadMethod, ServiceCheck, ServicePlan},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// How soon a check that has failed is asked again, at first and at last.
const FIRST_REST: Duration = Duration::from_millis(100);
const LONGEST_REST: Duration = Duration::from_secs(1);
/// How long a check may take that is asked at the end of the bake time.
const LAST_LOOK: Duration = Duration::from_secs(5);

/// What a step of a service may use.
#[derive(Debug)]
pub(super) struct ServiceCtx<'a> {
    now: Mono,
    plan: &'a ServicePlan,
    ops: &'a mut u64,
    commands: &'a mut Vec<RolloutCommand>,
    /// The instance that the record says we have started.
    started: &'a mut Option<InstanceNumber>,
    /// Whether the record says that it ran.
    ran: &'a mut bool,
    /// How far the record says that it is.
    told: &'a mut ToldState,
    /// What was last told of each service.
    notes: &'a mut BTreeMap<Name, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ServiceUpdate {
    stage: ServiceStage,
    /// Before it was told.
    before: ServiceFacts,
    /// Of reload and checks.
    deadline: Mono,
    /// Of flip-flop: the instance that takes over.
    new: Option<InstanceNumber>,
    /// How long the check that is asked rests when it fails.
    rest: Duration,
    /// What the last check said against it.
    last: Option<Trouble>,
    /// It goes back: an instance that was started for nothing is only to be stopped.
    back: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ServiceStage {
    Inspecting {
        op: Op,
    },
    Telling {
        op: Op,
    },
    Probing {
        op: Op,
        check: usize,
    },
    /// A check has failed and is asked again.
    Resting {
        until: Mono,
        check: usize,
    },
    /// `asked`: what is asked meanwhile; the check, or how the service is.
    Baking {
        until: Mono,
        next: Mono,
        asked: Option<(Op, Option<usize>)>,
    },
    /// The checks that compare instances, once it has baked.
    Comparing {
        op: Op,
        check: usize,
    },
    StoppingOld {
        op: Op,
    },
    /// It has failed: the new instance of flip-flop is stopped.
    Undoing {
        op: Op,
        trouble: Trouble,
    },
}

/// What has become of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServiceProgress {
    GoesOn,
    /// It has what it should have, or does not run.
    Confirmed,
    Failed(Trouble),
}

use ServiceProgress::{Confirmed, Failed, GoesOn};

impl<'a> ServiceCtx<'a> {
    pub(super) fn new(
        step: &'a mut RolloutStep,
        plan: &'a ServicePlan,
        ServiceRecord { started, ran, told, .. }: &'a mut ServiceRecord,
        ops: &'a mut u64,
        notes: &'a mut BTreeMap<Name, String>,
    ) -> ServiceCtx<'a> {
        let (now, commands) = (step.now.mono, &mut step.commands);
        ServiceCtx { now, plan, ops, commands, started, ran, told, notes }
    }

    fn ask(&mut self, command: impl FnOnce(Op) -> RolloutCommand) -> Op {
        *self.ops += 1;
        let op = Op(*self.ops);
        self.commands.push(command(op));
        op
    }

    fn inspect(&mut self) -> Op {
        let service = self.plan.name.clone();
        self.ask(|op| RolloutCommand::Inspect { op, service })
    }

    fn tell(&mut self, action: ServiceAction, deadline: Mono) -> Op {
        // What is never told needs no way back.
        *self.ran = true;
        if *self.told == ToldState::Untold {
            *self.told = ToldState::Telling;
        }
        let service = self.plan.name.clone();
        self.ask(|op| RolloutCommand::Tell { op, service, action, deadline })
    }

    fn note(&mut self, note: String) {
        let service = self.plan.name.clone();
        self.notes.insert(service.clone(), note.clone());
        self.commands.push(RolloutCommand::Note { service, note });
    }

    fn probe(&mut self, check: usize, target: ProbeTarget, deadline: Mono) -> Op {
        let service = self.plan.name.clone();
        self.ask(|op| RolloutCommand::Probe { op, service, check, target, deadline })
    }
}

impl ServiceUpdate {
    pub(super) fn begin(ctx: &mut ServiceCtx<'_>, back: bool) -> ServiceUpdate {
        ctx.notes.remove(&ctx.plan.name);
        ServiceUpdate {
            stage: ServiceStage::Inspecting { op: ctx.inspect() },
            before: ServiceFacts::default(),
            deadline: ctx.now.after(ctx.plan.reload_timeout),
            new: None,
            rest: FIRST_REST,
            last: None,
            back,
        }
    }

    /// When it wants to hear that time has passed.
    pub(super) fn wake(&self) -> Option<Mono> {
        match &self.stage {
            ServiceStage::Resting { until, .. } => Some(*until),
            ServiceStage::Baking { until, next, asked: None } => Some((*until).min(*next)),
            ServiceStage::Inspecting { .. }
            | ServiceStage::Telling { .. }
            | ServiceStage::Probing { .. }
            | ServiceStage::Baking { asked: Some(_), .. }
            | ServiceStage::Comparing { .. }
            | ServiceStage::StoppingOld { .. }
            | ServiceStage::Undoing { .. } => None,
        }
    }

    /// When it is done at the earliest, with nothing in its way.
    pub(super) fn done_at(&self, plan: &ServicePlan, now: Mono) -> Mono {
        match &self.stage {
            ServiceStage::Inspecting { .. }
            | ServiceStage::Telling { .. }
            | ServiceStage::Probing { .. }
            | ServiceStage::Resting { .. } => now.after(plan.bake_time),
            ServiceStage::Baking { until, .. } => *until,
            ServiceStage::Comparing { .. }
            | ServiceStage::StoppingOld { .. }
            | ServiceStage::Undoing { .. } => now,
        }
    }

    /// What it does now, for people.
    pub(super) fn doing(&self) -> &'static str {
        match &self.stage {
            ServiceStage::Inspecting { .. } | ServiceStage::Telling { .. } => "being told",
            ServiceStage::Probing { .. } | ServiceStage::Resting { .. } => "being checked",
            ServiceStage::Baking { .. } | ServiceStage::Comparing { .. } => "baking",
            ServiceStage::StoppingOld { .. } => "stopping its old instance",
            ServiceStage::Undoing { .. } => "stopping its new instance",
        }
    }

    pub(super) fn tick(&mut self, ctx: &mut ServiceCtx<'_>) -> ServiceProgress {
        match self.stage.clone() {
            ServiceStage::Resting { until, check } if ctx.now >= until => self.probe(ctx, check),
            // Also when its time is over: what has happened since the last look counts.
            ServiceStage::Baking { until, next, asked: None } if ctx.now >= next.min(until) => {
                self.ask_while_baking(ctx, until, 0)
            }
            ServiceStage::Inspecting { .. }
            | ServiceStage::Telling { .. }
            | ServiceStage::Probing { .. }
            | ServiceStage::Resting { .. }
            | ServiceStage::Baking { .. }
            | ServiceStage::Comparing { .. }
            | ServiceStage::StoppingOld { .. }
            | ServiceStage::Undoing { .. } => GoesOn,
        }
    }

    pub(super) fn inspected(
        &mut self,
        ctx: &mut ServiceCtx<'_>,
        op: Op,
        outcome: Result<ServiceFacts, Trouble>,
    ) -> ServiceProgress {
        match self.stage.clone() {
            ServiceStage::Inspecting { op: mine } if mine == op => match outcome {
                Ok(facts) => self.tell(ctx, facts),
                Err(trouble) => Failed(trouble),
            },
            ServiceStage::Baking { until, asked: Some((mine, None)), .. } if mine == op => {
                match outcome {
                    // The old one may well be.
                    Ok(facts) if self.new.is_some_and(|it| !facts.instances.contains(&it)) => {
                        self.fail(ctx, Trouble("its new instance has ended".to_owned()))
                    }
                    Ok(facts) if facts.running && facts.healthy => self.bake_on(ctx, until),
                    Ok(facts) if facts.running => {
                        self.fail(ctx, Trouble("it has become unhealthy".to_owned()))
                    }
                    Ok(_) => self.fail(ctx, Trouble("it has ended".to_owned())),
                    Err(trouble) => self.fail(ctx, trouble),
                }
            }
            ServiceStage::Inspecting { .. }
            | ServiceStage::Telling { .. }
            | ServiceStage::Probing { .. }
            | ServiceStage::Resting { .. }
            | ServiceStage::Baking { .. }
            | ServiceStage::Comparing { .. }
            | ServiceStage::StoppingOld { .. }
            | ServiceStage::Undoing { .. } => GoesOn,
        }
    }

    fn tell(&mut self, ctx: &mut ServiceCtx<'_>, facts: ServiceFacts) -> ServiceProgress {
        if !facts.running {
            return match (facts.died && *ctx.ran, self.back) {
                (false, _) => Confirmed,
                (true, false) => Failed(Trouble("it has ended".to_owned())),
                (true, true) => {
                    let op = ctx.tell(ServiceAction::BringUp, self.deadline);
                    self.stage = ServiceStage::Telling { op };
                    GoesOn
                }
            };
        }
        let compares_children = |check: &ServiceCheck| match check {
            ServiceCheck::ChangeChildPid { .. } => true,
            ServiceCheck::HealthComparison(_) | ServiceCheck::Http(_) | ServiceCheck::Exec(_) => {
                false
            }
        };
        if ctx.plan.checks.iter().any(compares_children) && facts.children.is_empty() {
            return Failed(Trouble(
                "its main process has no children that could change".to_owned(),
            ));
        }
        self.before = facts;
        let action = match &ctx.plan.reload {
            ReloadMethod::TryReloadOrRestart => ServiceAction::ReloadOrRestart,
            ReloadMethod::Signal(signal) => ServiceAction::Signal(*signal),
            ReloadMethod::Exec(_) => ServiceAction::Exec,
            ReloadMethod::FlipFlop => return self.flip(ctx),
        };
        let op = ctx.tell(action, self.deadline);
        self.stage = ServiceStage::Telling { op };
        GoesOn
    }

    /// Brings the instance up that does not run. Of both only if the record says that one of them
    /// is ours.
    fn flip(&mut self, ctx: &mut ServiceCtx<'_>) -> ServiceProgress {
        let active = |it| self.before.instances.contains(&it);
        let new = match (active(InstanceNumber::One), active(InstanceNumber::Two), *ctx.started) {
            // The new one was stopped again: the old one has never heard of the update.
            (_, _, None) if self.back => return Confirmed,
            (true, true, Some(ours)) if self.back => {
                // The old one has never stopped.
                let op = ctx.tell(ServiceAction::Stop(ours), self.deadline);
                self.stage = ServiceStage::StoppingOld { op };
                return GoesOn;
            }
            (true, true, Some(ours)) => ours,
            (true, true, None) => {
                return Failed(Trouble("both of its instances run already".to_owned()));
            }
            (true, false, Some(InstanceNumber::Two)) | (false, true, Some(InstanceNumber::One))
                if self.back =>
            {
                return Confirmed;
            }
            (true, false, _) => InstanceNumber::Two,
            (false, true, _) => InstanceNumber::One,
            (false, false, _) => return Confirmed,
        };
        self.new = Some(new);
        // On the way back it stays who has the new files: the one to be stopped.
        if !self.back {
            *ctx.started = Some(new);
        }
        let op = ctx.tell(ServiceAction::Start(new), self.deadline);
        self.stage = ServiceStage::Telling { op };
        GoesOn
    }

    pub(super) fn told(
        &mut self,
        ctx: &mut ServiceCtx<'_>,
        op: Op,
        outcome: Result<(), Trouble>,
    ) -> ServiceProgress {
        match (self.stage.clone(), outcome) {
            (ServiceStage::Telling { op: mine }, Ok(())) if mine == op => self.probe(ctx, 0),
            (ServiceStage::Telling { op: mine }, Err(trouble)) if mine == op => {
                self.fail(ctx, trouble)
            }
            (ServiceStage::StoppingOld { op: mine }, Ok(())) if mine == op => Confirmed,
            (ServiceStage::StoppingOld { op: mine }, Err(Trouble(why))) if mine == op => {
                self.fail(ctx, Trouble(format!("its old instance does not stop: {why}")))
            }
            (ServiceStage::Undoing { op: mine, trouble }, Ok(())) if mine == op => {
                *ctx.started = None;
                Failed(trouble)
            }
            (ServiceStage::Undoing { op: mine, trouble }, Err(Trouble(why))) if mine == op => {
                Failed(Trouble(format!("{trouble}; and its new instance does not stop: {why}")))
            }
            (
                ServiceStage::Inspecting { .. }
                | ServiceStage::Telling { .. }
                | ServiceStage::Probing { .. }
                | ServiceStage::Resting { .. }
                | ServiceStage::Baking { .. }
                | ServiceStage::Comparing { .. }
                | ServiceStage::StoppingOld { .. }
                | ServiceStage::Undoing { .. },
                Ok(()) | Err(_),
            ) => GoesOn,
        }
    }

    fn target(&self) -> ProbeTarget {
        match self.new {
            Some(new) => ProbeTarget::Instances { new, old: Some(new.other()) },
            None => ProbeTarget::Service,
        }
    }

    /// Asks the checks one after the other, from this one on.
    fn probe(&mut self, ctx: &mut ServiceCtx<'_>, from: usize) -> ServiceProgress {
        let next = (from..ctx.plan.checks.len()).find(|at| !compares_instances(ctx, *at));
        let Some(check) = next else {
            let until = ctx.now.after(ctx.plan.bake_time);
            return match ctx.plan.bake_time.is_zero() {
                true => self.compare(ctx, 0),
                false => self.ask_while_baking(ctx, until, 0),
            };
        };
        if ctx.now >= self.deadline {
            let last = self.last.take().map_or_else(String::new, |last| format!(": {last}"));
            return self.fail(ctx, Trouble(format!("its checks did not pass in time{last}")));
        }
        let op = ctx.probe(check, self.target(), self.deadline);
        self.stage = ServiceStage::Probing { op, check };
        GoesOn
    }

    pub(super) fn probed(
        &mut self,
        ctx: &mut ServiceCtx<'_>,
        op: Op,
        outcome: ProbeOutcome,
    ) -> ServiceProgress {
        match self.stage.clone() {
            ServiceStage::Probing { op: mine, check } if mine == op => {
                match self.judge(ctx, check, outcome) {
                    Ok(()) => {
                        (self.rest, self.last) = (FIRST_REST, None);
                        self.probe(ctx, check + 1)
                    }
                    Err(trouble) => {
                        self.last = Some(trouble);
                        let until = ctx.now.after(self.rest).min(self.deadline);
                        self.rest = (self.rest * 2).min(LONGEST_REST);
                        self.stage = ServiceStage::Resting { until, check };
                        GoesOn
                    }
                }
            }
            ServiceStage::Baking { until, asked: Some((mine, Some(check))), .. } if mine == op => {
                match self.judge(ctx, check, outcome) {
                    Ok(()) => self.ask_while_baking(ctx, until, check + 1),
                    Err(trouble) => self.fail(ctx, trouble),
                }
            }
            ServiceStage::Comparing { op: mine, check } if mine == op => {
                match self.judge(ctx, check, outcome) {
                    Ok(()) => self.compare(ctx, check + 1),
                    Err(trouble) => self.fail(ctx, trouble),
                }
            }
            ServiceStage::Inspecting { .. }
            | ServiceStage::Telling { .. }
            | ServiceStage::Probing { .. }
            | ServiceStage::Resting { .. }
            | ServiceStage::Baking { .. }
            | ServiceStage::Comparing { .. }
            | ServiceStage::StoppingOld { .. }
            | ServiceStage::Undoing { .. } => GoesOn,
        }
    }

    /// What an answer to a check comes to.
    fn judge(
        &self,
        ctx: &mut ServiceCtx<'_>,
        check: usize,
        outcome: ProbeOutcome,
    ) -> Result<(), Trouble> {
        match (ctx.plan.checks.get(check), outcome) {
            (_, ProbeOutcome::Failed(trouble)) => Err(trouble),
            (
                Some(ServiceCheck::ChangeChildPid { strict }),
                ProbeOutcome::Children { children, .. },
            ) => children_changed(&self.before.children, &children, *strict),
            (
                Some(ServiceCheck::HealthComparison(compared)),
                ProbeOutcome::Requests { new, old },
            ) => {
                let (new, old) = (new?, old?);
                if new.requests < compared.requests {
                    ctx.note(too_few(compared, new));
                }
                not_notably_worse(compared, new, old)
            }
            (_, ProbeOutcome::Passed) => Ok(()),
            (_, ProbeOutcome::Children { .. } | ProbeOutcome::Requests { .. }) => {
                Err(Trouble("its check has answered another question".to_owned()))
            }
        }
    }

    /// Asks the checks that can fail again, then how the service is, and rests.
    fn ask_while_baking(
        &mut self,
        ctx: &mut ServiceCtx<'_>,
        until: Mono,
        from: usize,
    ) -> ServiceProgress {
        let next = (from..ctx.plan.checks.len()).find(|at| is_asked_again(ctx, *at));
        let deadline = until.max(ctx.now.after(LAST_LOOK));
        let asked = match next {
            Some(check) => (ctx.probe(check, self.target(), deadline), Some(check)),
            None => (ctx.inspect(), None),
        };
        self.stage = ServiceStage::Baking { until, next: ctx.now, asked: Some(asked) };
        GoesOn
    }

    fn bake_on(&mut self, ctx: &mut ServiceCtx<'_>, until: Mono) -> ServiceProgress {
        if ctx.now >= until {
            return self.compare(ctx, 0);
        }
        let next = ctx.now.after(LONGEST_REST).min(until);
        self.stage = ServiceStage::Baking { until, next, asked: None };
        GoesOn
    }

    /// Asks the checks that compare instances, and lets the old one stop.
    fn compare(&mut self, ctx: &mut ServiceCtx<'_>, from: usize) -> ServiceProgress {
        let next = (from..ctx.plan.checks.len()).find(|at| compares_instances(ctx, *at));
        let deadline = ctx.now.after(ctx.plan.reload_timeout);
        self.stage = match (next, self.new) {
            (Some(check), _) => {
                ServiceStage::Comparing { op: ctx.probe(check, self.target(), deadline), check }
            }
            (None, Some(new)) => ServiceStage::StoppingOld {
                op: ctx.tell(ServiceAction::Stop(new.other()), deadline),
            },
            (None, None) => return Confirmed,
        };
        GoesOn
    }

    /// It has failed: what flip-flop has started does not stay.
    fn fail(&mut self, ctx: &mut ServiceCtx<'_>, trouble: Trouble) -> ServiceProgress {
        let Some(new) = self.new else { return Failed(trouble) };
        let deadline = ctx.now.after(ctx.plan.reload_timeout);
        let op = ctx.tell(ServiceAction::Stop(new), deadline);
        self.stage = ServiceStage::Undoing { op, trouble };
        GoesOn
    }
}

fn compares_instances(ctx: &ServiceCtx<'_>, check: usize) -> bool {
    match &ctx.plan.checks[check] {
        ServiceCheck::HealthComparison(_) => true,
        ServiceCheck::ChangeChildPid { .. } | ServiceCheck::Http(_) | ServiceCheck::Exec(_) => {
            false
        }
    }
}

/// While it bakes: what has changed stays changed.
fn is_asked_again(ctx: &ServiceCtx<'_>, check: usize) -> bool {
    match &ctx.plan.checks[check] {
        ServiceCheck::Http(_) | ServiceCheck::Exec(_) => true,
        ServiceCheck::ChangeChildPid { .. } | ServiceCheck::HealthComparison(_) => false,
    }
}

fn children_changed(
    before: &BTreeSet<u32>,
    now: &BTreeSet<u32>,
    strict: bool,
) -> Result<(), Trouble> {
    let changed = match strict {
        true => before.is_disjoint(now),
        false => before != now,
    };
    match changed && !now.is_empty() {
        true => Ok(()),
        false if now.is_empty() => Err(Trouble("its main process has no children".to_owned())),
        false => Err(Trouble("the children of its main process have not changed".to_owned())),
    }
}

/// What the comparison has passed for.
fn too_few(compared: &HealthComparison, new: RequestCount) -> String {
    let (had, needed) = (new.requests, compared.requests);
    format!(
        "its new instance was not compared with the old one: it had {had} requests, and {needed} are \
         needed"
    )
}

/// No traffic says nothing against it.
fn not_notably_worse(
    compared: &HealthComparison,
    new: RequestCount,
    old: RequestCount,
) -> Result<(), Trouble> {
    // Failures of so many requests, as exact fractions.
    let fraction = |count: RequestCount| {
        (u128::from(count.failures.min(count.requests)), u128::from(count.requests.max(1)))
    };
    let ((failed, of), (old_failed, old_of)) = (fraction(new), fraction(old));
    let points = u128::from(compared.points);
    let is_worse = new.requests >= compared.requests
        && 100 * failed * old_of >= 100 * old_failed * of + points * of * old_of;
    match is_worse {
        false => Ok(()),
        true => Err(Trouble(format!(
            "its new instance fails {failed} of {of} requests, the old one {old_failed} of {old_of}"
        ))),
    }
}
