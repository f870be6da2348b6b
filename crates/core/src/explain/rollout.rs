//! Why a profile, a template or a service of the rollout is as it is: what is in place, what keeps
//! another version out, and who waits for it.

use super::{Calendar, span};
use crate::{
    name::Name,
    node::Node,
    plan::{Condition, RolloutSource, ServicePlan, ServiceTarget, SourceRef, TemplatePlan},
    rollout::{KeptFailure, Rollout, RolloutPhase, ToldState},
};
use std::time::Duration;

/// So many lines are said of one thing.
pub const LINES: usize = 5;

/// Something of a rollout, by what it is called: `profile.app`, `template.web`, `service.web`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolledOut {
    Profile(Name),
    Template(Name),
    Service(Name),
}

impl RolledOut {
    /// `None`: it is the name of something else.
    #[must_use]
    pub fn parse(text: &str) -> Option<RolledOut> {
        let (kind, name) = text.split_once('.')?;
        let name = Name::new(name).ok()?;
        match kind {
            "profile" => Some(RolledOut::Profile(name)),
            "template" => Some(RolledOut::Template(name)),
            "service" => Some(RolledOut::Service(name)),
            _ => None,
        }
    }
}

impl From<RolloutSource> for RolledOut {
    fn from(source: RolloutSource) -> RolledOut {
        match source {
            RolloutSource::Profile(name) => RolledOut::Profile(name),
            RolloutSource::Template(name) => RolledOut::Template(name),
        }
    }
}

/// Why it is as it is, in five lines at most. `None`: there is no such thing.
#[must_use]
pub fn why_rolled_out(
    rollout: &Rollout,
    node: &Node,
    calendar: Calendar,
    subject: &RolledOut,
) -> Option<Vec<String>> {
    let asked = RolloutQuestion { rollout, node, calendar };
    let mut lines = match subject {
        RolledOut::Profile(name) => asked.profile(name)?,
        RolledOut::Template(name) => asked.template(name)?,
        RolledOut::Service(name) => asked.service(name)?,
    };
    lines.truncate(LINES);
    Some(lines)
}

struct RolloutQuestion<'a> {
    rollout: &'a Rollout,
    node: &'a Node,
    calendar: Calendar,
}

impl RolloutQuestion<'_> {
    fn profile(&self, name: &Name) -> Option<Vec<String>> {
        let plan = self.rollout.plan();
        plan.profiles.iter().find(|it| it.name == *name)?;
        let kept = self.rollout.kept().profiles.get(name);
        let applied = kept.and_then(|it| Some((it.applied.as_ref()?, it.applied_at)));
        let state = match applied {
            None => format!("profile '{name}' has no version yet"),
            Some((version, at)) => {
                let (since, age) = ((self.calendar.written)(at), self.age(at));
                format!("profile '{name}' has version {version}, applied {since} ({age} ago)")
            }
        };
        let mut lines = vec![state];
        lines.extend(self.keeping_out(Some(name)));
        let trouble = self.rollout.source_trouble(name.as_str());
        if let Some(trouble) = trouble.filter(|_| self.pending_of(name).is_none()) {
            lines.push(format!("its source could not be asked: {trouble}"));
        }
        let pending = self.pending_of(name).and_then(|it| it.version.as_ref());
        let refused = kept.and_then(|it| it.all_refused().find(|it| pending != Some(*it)));
        if let Some(refused) = refused {
            lines.push(format!(
                "version {refused} failed or was rolled back: it is not applied until the source has \
                 served another one, or somebody asks (mainstay rollout refresh {name})"
            ));
        }
        lines.extend(self.next_load(name));
        let uses = |it: &&TemplatePlan| it.profiles.contains(name);
        let templates = plan.templates.iter().filter(uses).map(|it| it.name.as_str());
        lines.extend(listed("made of it: template", templates.collect()));
        lines.extend(self.waiting_for(&RolloutSource::Profile(name.clone())));
        Some(lines)
    }

    fn template(&self, name: &Name) -> Option<Vec<String>> {
        let plan = self.rollout.plan();
        let template = plan.templates.iter().find(|it| it.name == *name)?;
        let facts = self.rollout.facts();
        let dst = template.dst.display();
        let state = match facts.templates.get(name) {
            Some(fact) if fact.in_place => format!("template '{name}' is in place at {dst}"),
            Some(_) => {
                format!("template '{name}' was put in place at {dst}, and may not be any more")
            }
            None => format!("template '{name}' has made no file yet: {dst}"),
        };
        let mut lines = vec![state];
        let without = |it: &&Name| {
            let kept = self.rollout.kept().profiles.get(*it);
            kept.is_none_or(|it| it.applied.is_none())
        };
        for profile in template.profiles.iter().filter(without) {
            lines.push(format!("profile '{profile}', which it uses, has no version yet"));
        }
        lines.extend(self.keeping_out(None));
        let uses = |it: &&ServicePlan| it.templates.contains(name);
        let services = plan.services.iter().filter(uses).map(|it| it.name.as_str());
        lines.extend(listed("told when it changes: service", services.collect()));
        lines.extend(self.waiting_for(&RolloutSource::Template(name.clone())));
        Some(lines)
    }

    fn service(&self, name: &Name) -> Option<Vec<String>> {
        let plan = self.rollout.plan();
        let service = plan.services.iter().find(|it| it.name == *name)?;
        let target = match &service.target {
            ServiceTarget::Job(job) => format!("job {job}"),
            ServiceTarget::Unit(unit) => format!("unit {unit}"),
            ServiceTarget::Command => "a command".to_owned(),
        };
        let record = self.rollout.kept().update.as_ref();
        let told = record.and_then(|it| it.services.iter().find(|it| it.service == *name));
        let state = match told.map(|it| it.told) {
            None => "nothing is to be told",
            Some(ToldState::Untold) => "it is to be told in the update under way",
            Some(ToldState::Telling) => "it is being told, or watched until it is confirmed",
            Some(ToldState::Confirmed) => "it was told in the update under way, and is confirmed",
            Some(ToldState::Back) => "it has the files of before again",
        };
        let mut lines = vec![format!("service '{name}' ({target}): {state}")];
        lines.extend(self.keeping_out(None));
        let templates = service.templates.iter().map(Name::as_str).collect();
        lines.extend(listed("it is told when one of these changes: template", templates));
        let (timeout, bake) = (span(service.reload_timeout), span(service.bake_time));
        lines.push(match service.bake_time {
            Duration::ZERO => format!("it has {timeout} to be confirmed"),
            _ => format!("it has {timeout} to be confirmed, and is watched for {bake} afterwards"),
        });
        Some(lines)
    }

    /// What keeps another version from being applied: of this profile, or of any.
    fn keeping_out(&self, profile: Option<&Name>) -> Vec<String> {
        let mut lines = Vec::new();
        let way = match self.rollout.phase() {
            RolloutPhase::Updating => Some("an update is under way"),
            RolloutPhase::RollingBack => Some("an update goes back"),
            RolloutPhase::Starting
            | RolloutPhase::Running
            | RolloutPhase::Pending
            | RolloutPhase::Failed
            | RolloutPhase::Paused => None,
        };
        if let Some(way) = way {
            let doing = self.rollout.doing().map(|(doing, subject)| match subject {
                Some(subject) => format!(": {doing} {subject}"),
                None => format!(": {doing}"),
            });
            lines.push(format!("{way}{}", doing.unwrap_or_default()));
        }
        if self.rollout.kept().paused {
            lines.push("the rollout is paused: mainstay rollout resume ends that".to_owned());
        }
        if let Some(pending) = &self.rollout.kept().pending {
            lines.extend(self.pending(pending, profile));
        }
        lines
    }

    fn pending_of(&self, profile: &Name) -> Option<&KeptFailure> {
        let pending = self.rollout.kept().pending.as_ref();
        pending.filter(|it| it.profile.as_ref().is_none_or(|it| it == profile))
    }

    fn pending(&self, pending: &KeptFailure, profile: Option<&Name>) -> Vec<String> {
        if let (Some(asked), Some(pending)) = (profile, &pending.profile)
            && asked != pending
        {
            return vec![format!(
                "profile '{pending}' is pending, and nothing else is asked for until it works"
            )];
        }
        let what = match (&pending.profile, &pending.version) {
            (_, Some(version)) => format!("version {version} failed: "),
            // It names itself.
            (Some(_), None) => String::new(),
            (None, None) => "the configuration could not be applied: ".to_owned(),
        };
        let since = (self.calendar.written)(pending.since);
        let why = first_line(&pending.failure);
        let mut lines = vec![format!("{what}{why} (since {since})")];
        if pending.adrift {
            lines.push("the way back failed as well: what is in place is not certain".to_owned());
        } else if pending.came_back {
            lines.push("the files of before are in place".to_owned());
        }
        lines.push(match pending.failed {
            true => "its time is over: it ends with another version, or mainstay rollout refresh"
                .to_owned(),
            false => {
                let left = pending.deadline.since(self.calendar.now.mono);
                format!("without another version it has failed for good in {}", span(whole(left)))
            }
        });
        lines
    }

    fn next_load(&self, name: &Name) -> Option<String> {
        if self.rollout.kept().paused {
            return None;
        }
        let at = self.rollout.next_load(name.as_str())?;
        let left = whole(at.since(self.calendar.now.mono));
        Some(format!("its source is asked again in {}, or when somebody asks", span(left)))
    }

    /// The jobs whose `when` or `while` names it.
    fn waiting_for(&self, source: &RolloutSource) -> Option<String> {
        let named = |it: &Condition| matches!(&it.source, SourceRef::Rollout(it) if it == source);
        let jobs = self.node.plan().jobs.iter().filter(|job| {
            let follows = job.follows.as_ref();
            job.when.once.iter().any(named)
                || follows
                    .is_some_and(|it| matches!(&it.source, SourceRef::Rollout(it) if it == source))
        });
        listed(&format!("{source} is waited for by"), jobs.map(|it| it.name.as_str()).collect())
    }

    fn age(&self, at: i64) -> String {
        let age = self.calendar.now.wall.saturating_sub(at) / 1_000_000_000;
        span(Duration::from_secs(u64::try_from(age).unwrap_or(0)))
    }
}

/// What follows is a difference, which `diff` shows as well.
fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_end_matches(':')
}

/// Nobody counts parts of a second.
fn whole(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs())
}

fn listed(what: &str, names: Vec<&str>) -> Option<String> {
    (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
}
