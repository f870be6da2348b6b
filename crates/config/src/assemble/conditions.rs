//! Who waits for whom: sources are looked up among all jobs, and circles are found.

use crate::{
    assemble::cycle,
    diag::nearest,
    keys::{
        job::PlacedJob,
        when::{
            UnresolvedCondition, UnresolvedTrigger, events_of_jobs, events_of_node,
            events_of_rollout, events_of_watches,
        },
    },
    reader::{Place, Reader, Span},
};
use mainstay_core::{
    event::{EventName, Speaker},
    name::Name,
    plan::{
        Awaited, Condition, OnLoss, RolloutPlan, RolloutSource, SourceRef, Trigger, WatchPlan,
        While,
    },
};
use std::collections::{BTreeMap, BTreeSet};

/// Conditions in a whole plan; instances that wait for instances multiply.
const MOST_CONDITIONS: usize = 200_000;
const GLOBAL: &str = "global";

/// Jobs and watches by the names that a source may use.
struct SourceIndex {
    /// A job, or all instances of one.
    by_name: BTreeMap<String, Vec<Name>>,
    /// Jobs without checks.
    unchecked: BTreeSet<Name>,
    watches: BTreeSet<String>,
    /// Profiles and templates.
    rollout: BTreeSet<RolloutSource>,
}

/// Fills in `when` and `while` of every job.
pub(crate) fn resolve(
    r: &mut Reader<'_>,
    jobs: &mut [PlacedJob],
    watches: &[(WatchPlan, Place)],
    rollout: Option<&RolloutPlan>,
) {
    let known = SourceIndex::of(jobs, watches, rollout);
    let mut conditions = 0;
    let mut wrong: BTreeSet<String> = BTreeSet::new();
    for placed in &mut *jobs {
        r.file = placed.at.file;
        // What is wrong with one instance is most often wrong with all: it is told once.
        let quiet = placed.echo && wrong.contains(&placed.table_name);
        let before = r.errors();
        let path = format!("jobs.{}", placed.table_name);
        r.quiet(quiet, |r| r.within(&path, |r| resolve_one(r, &known, placed)));
        if r.errors() > before {
            wrong.insert(placed.table_name.clone());
        }
        conditions += placed.job.plan.when.once.len();
        if conditions > MOST_CONDITIONS {
            let message = format!("more than {MOST_CONDITIONS} conditions");
            r.within(&path, |r| {
                r.wrong::<()>(placed.at.span, message, "let fewer instances wait for each other")
            });
            return;
        }
    }
    circles(r, jobs);
}

fn resolve_one(r: &mut Reader<'_>, known: &SourceIndex, placed: &mut PlacedJob) {
    let plan = &mut placed.job.plan;
    let when = std::mem::take(&mut placed.job.when);
    plan.when.timeout = when.timeout;
    for written in &when.once {
        let found = r.within("when", |r| known.conditions(r, written, &plan.name));
        known.doubt(r, written, found.as_deref().filter(|_| !placed.echo));
        for condition in found.unwrap_or_default() {
            if plan.when.once.len() > 64 || !plan.when.once.contains(&condition) {
                plan.when.once.push(condition);
            }
        }
    }
    plan.when.trigger = match when.trigger {
        None => None,
        Some(UnresolvedTrigger::Interval(every)) => Some(Trigger::Interval(every)),
        Some(UnresolvedTrigger::Cron(cron)) => Some(Trigger::Cron(cron)),
        Some(UnresolvedTrigger::Each(written)) => {
            let found = r.within("when", |r| known.conditions(r, &written, &plan.name));
            known.doubt(r, &written, found.as_deref().filter(|_| !placed.echo));
            if written.event == Awaited::Event(EventName::Startup) {
                r.within("when", |r| {
                    r.warn(
                        written.span,
                        "startup happens once in a run",
                        "leave 'when' out: a job starts at startup by itself",
                    );
                });
            }
            found.map(Trigger::Each)
        }
    };
    if let Some((source, span)) = placed.job.follow.source.take() {
        let on_loss = placed.job.follow.on_loss.unwrap_or(OnLoss::Stop);
        plan.follows = r
            .within("while", |r| known.followed(r, &source, span))
            .map(|source| While { source, on_loss });
    }
}

impl SourceIndex {
    fn of(
        jobs: &[PlacedJob],
        watches: &[(WatchPlan, Place)],
        rollout: Option<&RolloutPlan>,
    ) -> SourceIndex {
        let profiles = rollout.iter().flat_map(|it| &it.profiles);
        let profiles = profiles.map(|it| RolloutSource::Profile(it.name.clone()));
        let templates = rollout.iter().flat_map(|it| &it.templates);
        let templates = templates.map(|it| RolloutSource::Template(it.name.clone()));
        let rollout = profiles.chain(templates).collect();
        let watches = watches.iter().map(|(watch, _)| watch.name.to_string()).collect();
        let mut by_name: BTreeMap<String, Vec<Name>> = BTreeMap::new();
        let mut unchecked = BTreeSet::new();
        for placed in jobs {
            let plan = &placed.job.plan;
            if plan.checks.is_empty() {
                unchecked.insert(plan.name.clone());
            }
            by_name.entry(plan.name.as_str().to_owned()).or_default().push(plan.name.clone());
            if let Some(base) = &plan.instance_of {
                by_name.entry(base.as_str().to_owned()).or_default().push(plan.name.clone());
            }
        }
        SourceIndex { by_name, unchecked, watches, rollout }
    }

    /// What a condition means: one condition, or one for each instance.
    fn conditions(
        &self,
        r: &mut Reader<'_>,
        written: &UnresolvedCondition,
        own: &Name,
    ) -> Option<Vec<Condition>> {
        let event = written.event;
        let of_node = event.is_said_by(Speaker::Node);
        let Some((source, span)) = &written.source else {
            if of_node {
                return Some(vec![Condition { source: SourceRef::Node, event }]);
            }
            let message = format!("whose '{event}'?");
            return r.wrong(written.span, message, "add source = \"JOB\"");
        };
        if source == GLOBAL {
            if of_node {
                return Some(vec![Condition { source: SourceRef::Node, event }]);
            }
            let message = format!("'{event}' is said by a job, not by the node");
            let help = format!("name a job as source; the node says {}", events_of_node());
            return r.wrong(*span, message, help);
        }
        let names = match self.look_up(r, source, *span)? {
            FoundSource::Jobs(names) => names,
            FoundSource::Watch(watch) => return of_watch(r, written, watch),
            FoundSource::Rollout(source) => return of_rollout(r, written, source),
        };
        if of_node {
            let message = format!("'{event}' is said by the node, not by a job");
            return r.wrong(*span, message, "remove source, or write source = \"global\"");
        }
        if !event.is_said_by(Speaker::Job) {
            let message = format!("'{event}' is said by a watch, not by a job");
            return r.wrong(written.span, message, format!("use {}", events_of_jobs()));
        }
        if names == [own.clone()] {
            return r.wrong(
                *span,
                "the job waits for itself and would never start",
                "name another job",
            );
        }
        let all =
            names.iter().map(|name| Condition { source: SourceRef::Job(name.clone()), event });
        Some(all.collect())
    }

    /// Warns of a condition that never comes: nobody can find a job without checks unhealthy.
    fn doubt(
        &self,
        r: &mut Reader<'_>,
        written: &UnresolvedCondition,
        found: Option<&[Condition]>,
    ) {
        let unchecked = |it: &Condition| match &it.source {
            SourceRef::Job(name) => self.unchecked.contains(name),
            SourceRef::Node | SourceRef::Watch(_) | SourceRef::Rollout(_) => false,
        };
        let vain = found.is_some_and(|all| !all.is_empty() && all.iter().all(unchecked));
        if let Some((source, _)) = &written.source
            && vain
            && written.event == Awaited::Event(EventName::Unhealthy)
        {
            let message = format!("'{source}' has no checks, and never says unhealthy");
            let help = format!(
                "wait for exitFailed if its crash is meant, or add a check: jobs.{source}.health"
            );
            r.within("when", |r| r.warn(written.span, message, help));
        }
    }

    fn followed(&self, r: &mut Reader<'_>, source: &str, span: Span) -> Option<SourceRef> {
        if source == GLOBAL {
            return r.wrong(span, "the node is always there", "name a job, or remove 'while'");
        }
        match self.look_up(r, source, span)? {
            FoundSource::Watch(watch) => Some(SourceRef::Watch(watch)),
            FoundSource::Rollout(source) => Some(SourceRef::Rollout(source)),
            FoundSource::Jobs([one]) => Some(SourceRef::Job(one.clone())),
            FoundSource::Jobs(several) => {
                let message = format!("'{source}' has {} instances", several.len());
                let first = several.first().map_or("", Name::as_str);
                let help = format!("follow one of them: source = \"{first}\"");
                r.wrong(span, message, help)
            }
        }
    }

    /// A job goes before a watch of the same name.
    fn look_up(&self, r: &mut Reader<'_>, source: &str, span: Span) -> Option<FoundSource<'_>> {
        if let Some(names) = self.by_name.get(source) {
            return Some(FoundSource::Jobs(names));
        }
        let explicit = source.strip_prefix("watch.");
        let watch = explicit.unwrap_or(source);
        if self.watches.contains(watch)
            && let Ok(name) = Name::new(watch)
        {
            return Some(FoundSource::Watch(name));
        }
        if explicit.is_some() {
            let message = format!("there is no watch '{watch}'");
            let help = match nearest(watch, self.watches.iter().map(String::as_str)) {
                Some(near) => format!("did you mean 'watch.{near}'?"),
                None => format!("add the table [watches.{watch}]"),
            };
            return r.absent(span, message, help);
        }
        if let Some((kind @ ("template" | "profile"), name)) = source.split_once('.') {
            let known = RolloutSource::parse(source).filter(|it| self.rollout.contains(it));
            if let Some(source) = known {
                return Some(FoundSource::Rollout(source));
            }
            let names: Vec<String> = self.rollout.iter().map(ToString::to_string).collect();
            let help = match nearest(source, names.iter().map(String::as_str)) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("add the table [{kind}s.{name}]"),
            };
            return r.absent(span, format!("there is no {kind} '{name}'"), help);
        }
        let message = format!("there is no job '{source}'");
        // Comparing many wrong names with many jobs takes long, and helps nobody.
        if r.is_full() || self.by_name.len() > 1000 && r.errors() > 20 {
            return r.absent(span, message, "");
        }
        let names = self.by_name.keys().chain(&self.watches).map(String::as_str);
        let help = match nearest(source, names) {
            Some(near) => format!("did you mean '{near}'?"),
            None if self.by_name.len() <= 20 => {
                let known: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
                format!("the jobs are: {}", known.join(" "))
            }
            None => "name a job of this configuration".to_owned(),
        };
        r.absent(span, message, help)
    }
}

/// What the name of a source stands for.
enum FoundSource<'a> {
    Jobs(&'a [Name]),
    Watch(Name),
    Rollout(RolloutSource),
}

fn of_rollout(
    r: &mut Reader<'_>,
    written: &UnresolvedCondition,
    source: RolloutSource,
) -> Option<Vec<Condition>> {
    let event = written.event;
    if event.is_said_by(Speaker::Rollout) {
        return Some(vec![Condition { source: SourceRef::Rollout(source), event }]);
    }
    let message = format!("'{event}' is not said by a profile or a template");
    r.wrong(written.span, message, format!("use {}", events_of_rollout()))
}

fn of_watch(
    r: &mut Reader<'_>,
    written: &UnresolvedCondition,
    watch: Name,
) -> Option<Vec<Condition>> {
    let event = written.event;
    if event.is_said_by(Speaker::Watch) {
        return Some(vec![Condition { source: SourceRef::Watch(watch), event }]);
    }
    let message = format!("'{event}' is not said by a watch");
    r.wrong(written.span, message, format!("use {}", events_of_watches()))
}

/// Reports each circle of jobs that wait for each other, once.
fn circles(r: &mut Reader<'_>, jobs: &[PlacedJob]) {
    let index: BTreeMap<&str, usize> =
        jobs.iter().enumerate().map(|(at, it)| (it.job.plan.name.as_str(), at)).collect();
    let edges: Vec<Vec<usize>> = jobs
        .iter()
        .map(|it| {
            let latches = it.job.plan.when.once.iter().map(|condition| &condition.source);
            latches
                .chain(it.job.plan.follows.iter().map(|it| &it.source))
                .filter_map(|source| match source {
                    SourceRef::Job(name) => index.get(name.as_str()).copied(),
                    SourceRef::Node | SourceRef::Watch(_) | SourceRef::Rollout(_) => None,
                })
                .collect()
        })
        .collect();
    let mut told: BTreeSet<Vec<&str>> = BTreeSet::new();
    for circle in cycle::find(&edges) {
        // Instances of the same jobs make the same circle.
        let names: Vec<&str> =
            circle.iter().filter_map(|at| jobs.get(*at)).map(|it| it.table_name.as_str()).collect();
        let mut key = names.clone();
        key.sort_unstable();
        let Some(first) = circle.first().and_then(|at| jobs.get(*at)) else { continue };
        if !told.insert(key) {
            continue;
        }
        r.file = first.at.file;
        let message = format!("these jobs wait for each other: {}", cycle::drawn(&names));
        r.within(&format!("jobs.{}", first.table_name), |r| {
            let help = "remove one of the conditions";
            match circle.get(1).and_then(|at| jobs.get(*at)) {
                Some(next) => {
                    let next = (next.at, "which waits in turn");
                    r.wrong_beside::<()>(first.at.span, next, message, help)
                }
                None => r.wrong(first.at.span, message, help),
            }
        });
    }
}
