//! Plans with a group more or less than another, and what lies between two plans, by groups.

use super::groups::planned_group;
use crate::xmlrpc::fault::{Code, Fault};
use mainstay_core::plan::{self, Change, JobPlan, Plan, SourceRef, Trigger};
use std::{collections::BTreeSet, sync::Arc};

/// What a plan changes of another, by the names of groups, each in the order of its plan.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GroupChanges {
    pub(super) added: Vec<String>,
    pub(super) changed: Vec<String>,
    pub(super) removed: Vec<String>,
}

impl GroupChanges {
    pub(super) fn between(old: &Plan, new: &Plan) -> GroupChanges {
        let (before, after) = (groups_of(old), groups_of(new));
        let other = |name: &str| before.iter().any(|it| it == name) && differs(old, new, name);
        GroupChanges {
            added: after.iter().filter(|name| !before.contains(name)).cloned().collect(),
            changed: after.iter().filter(|name| other(name)).cloned().collect(),
            removed: before.iter().filter(|name| !after.contains(name)).cloned().collect(),
        }
    }
}

fn groups_of(plan: &Plan) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let names = plan.jobs.iter().map(|job| planned_group(job));
    names.filter(|name| seen.insert(*name)).map(str::to_owned).collect()
}

pub(super) fn has_group(plan: &Plan, name: &str) -> bool {
    plan.jobs.iter().any(|job| planned_group(job) == name)
}

/// Where a job is written may move without anything being another.
fn differs(old: &Plan, new: &Plan, name: &str) -> bool {
    let only = |plan: &Plan| Plan { jobs: of_group(plan, name).cloned().collect(), ..plan.clone() };
    let jobs = plan::diff(&only(old), &only(new)).jobs;
    old.app(name) != new.app(name) || jobs.iter().any(|job| job.change != Change::Unchanged)
}

fn of_group<'a>(plan: &'a Plan, name: &str) -> impl Iterator<Item = &'a Arc<JobPlan>> {
    plan.jobs.iter().filter(move |job| planned_group(job) == name)
}

/// The plan in force with a group of another beside it, in the order of that one.
pub(super) fn with_group(in_force: &Plan, read: &Plan, name: &str) -> Plan {
    let mut next = in_force.clone();
    next.jobs.clear();
    for job in &read.jobs {
        let kept = in_force.jobs.iter().find(|it| it.name == job.name);
        let added = (planned_group(job) == name).then_some(job);
        next.jobs.extend(added.or(kept).cloned());
    }
    let gone = in_force.jobs.iter().filter(|job| read.job(job.name.as_str()).is_none());
    next.jobs.extend(gone.cloned());
    if let Some(app) = read.app(name) {
        next.apps.retain(|known| known.name != app.name);
        next.apps.push(app.clone());
    }
    next
}

/// The plan in force but for one group.
pub(super) fn without_group(in_force: &Plan, name: &str) -> Plan {
    let mut next = in_force.clone();
    next.jobs.retain(|job| planned_group(job) != name);
    next.apps.retain(|app| app.name.as_str() != name);
    next
}

/// The plan, if all that its jobs wait for is in it.
pub(super) fn whole(plan: Plan) -> Result<Plan, Fault> {
    for job in &plan.jobs {
        let triggers = match &job.when.trigger {
            Some(Trigger::Each(conditions)) => conditions.as_slice(),
            Some(Trigger::Interval(_) | Trigger::Cron(_)) | None => &[],
        };
        let conditions = job.when.once.iter().chain(triggers).map(|it| &it.source);
        for source in conditions.chain(job.follows.as_ref().map(|it| &it.source)) {
            let missing = match source {
                SourceRef::Job(name) => plan.job(name.as_str()).is_none(),
                SourceRef::Watch(name) => plan.watch(name.as_str()).is_none(),
                SourceRef::Node | SourceRef::Rollout(_) => false,
            };
            if missing {
                let text = format!("'{}' waits for '{source}', which would not be there", job.name);
                return Err(Fault::about(Code::Failed, text));
            }
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_config::{Context, parse};

    fn plan(text: &str) -> Plan {
        parse("t.toml", text, &Context::default()).unwrap_or_else(|error| panic!("{error}")).plan
    }

    const OLD: &str = "[apps.shop]\n[jobs.a]\nexec = \"a\"\n[jobs.b]\nexec = \"b\"\napp = \"shop\"\n\
                       [jobs.c]\nexec = \"c\"\napp = \"shop\"\n[jobs.w]\nexec = \"w\"\ninstances = 2\n";
    const NEW: &str = "# moved\n[apps.shop]\n[jobs.b]\nexec = \"b\"\napp = \"shop\"\n[jobs.c]\nexec = \"c2\"\n\
                       app = \"shop\"\n[jobs.d]\nexec = \"d\"\n[jobs.w]\nexec = \"w\"\ninstances = 2\n";

    #[test]
    fn groups_are_compared_by_what_they_say_and_not_by_where() {
        let changes = GroupChanges::between(&plan(OLD), &plan(NEW));
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let expected = GroupChanges {
            added: names(&["d"]),
            changed: names(&["shop"]),
            removed: names(&["a"]),
        };
        assert_eq!(changes, expected);
        assert_eq!(GroupChanges::between(&plan(OLD), &plan(OLD)), GroupChanges::default());
    }

    #[test]
    fn group_by_group_the_one_becomes_the_other() {
        let (old, new) = (plan(OLD), plan(NEW));
        let mut next = without_group(&old, "a");
        next = without_group(&next, "shop");
        assert!(!has_group(&next, "shop") && next.app("shop").is_none());
        next = with_group(&next, &new, "shop");
        next = with_group(&next, &new, "d");
        assert_eq!(GroupChanges::between(&next, &new), GroupChanges::default());
        let names =
            |plan: &Plan| plan.jobs.iter().map(|it| it.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(&next), names(&new));
    }

    #[test]
    fn a_group_that_others_wait_for_stays() {
        let text = "[jobs.db]\nexec = \"d\"\n[jobs.web]\nexec = \"w\"\nwhen = { source = \"db\", once = \"healthy\" }\n";
        let all = plan(text);
        assert!(whole(without_group(&all, "web")).is_ok());
        let fault = whole(without_group(&all, "db")).expect_err("web waits for it");
        assert_eq!((fault.code, fault.text.contains("'web' waits for 'db'")), (Code::Failed, true));
    }
}
