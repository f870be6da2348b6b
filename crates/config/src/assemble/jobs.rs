//! `[jobs.NAME]` of all files: a job for each table, or one for each of its instances.

use super::{
    digest,
    parts::{KeyName, Part, table},
};
use crate::{
    keys::{
        health,
        job::{JOB, Job, MOST_INSTANCES, PlacedJob},
        stdio,
    },
    reader::{Place, Reader, as_i64},
};
use mainstay_core::{
    name::Name,
    plan::{JobPlan, Log, MOST_SOCKETS, Probe, Restart, RestartOn},
};
use std::collections::BTreeMap;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

const MOST_JOBS: usize = 10_000;

/// The jobs so far, and the names that are taken.
#[derive(Default)]
struct JobList {
    all: Vec<PlacedJob>,
    taken: BTreeMap<String, Place>,
}

pub(super) fn jobs(r: &mut Reader<'_>, parts: &[Part<'_>], log: &Log) -> Vec<PlacedJob> {
    let mut jobs = JobList::default();
    for part in parts {
        r.file = part.file;
        for (name, value) in part.table {
            let at = Place { file: part.file, span: name.span().into() };
            let more = r.within("jobs", |r| jobs.add(r, name, value, at, log));
            if more.is_none() {
                return jobs.all;
            }
        }
    }
    jobs.all
}

impl JobList {
    /// Adds a job or all its instances; `None` when there are too many.
    fn add<'t>(
        &mut self,
        r: &mut Reader<'_>,
        name: &KeyName<'t>,
        value: &'t Spanned<DeValue<'t>>,
        at: Place,
        log: &Log,
    ) -> Option<()> {
        let wrong = |r: &mut Reader<'_>, message: String, help: &str| {
            r.wrong::<()>(name.span(), message, help);
        };
        let base = match Name::new(name.get_ref()) {
            Ok(base) => base,
            Err(error) => {
                wrong(r, error.to_string(), "rename the job");
                return Some(());
            }
        };
        let Some(table) = table(r, name, value) else { return Some(()) };
        let count = instances(table);
        let numbers: Vec<Option<u32>> =
            count.map_or_else(|| vec![None], |count| (1..=count).map(Some).collect());
        if self.all.len() + numbers.len() > MOST_JOBS {
            wrong(r, format!("more than {MOST_JOBS} jobs"), "split them between nodes");
            return None;
        }
        let definition = digest::of(table);
        let before = r.errors();
        for number in numbers {
            let full = number.map_or_else(|| base.to_string(), |n| format!("{base}-{n}"));
            let full = match Name::new(&full) {
                Ok(full) => full,
                Err(error) => {
                    wrong(r, error.to_string(), "rename the job: its instances are numbered");
                    return Some(());
                }
            };
            let taken = self.taken.get(full.as_str()).or_else(|| self.taken.get(base.as_str()));
            if let Some(first) =
                taken.filter(|first| first.span != at.span || first.file != at.file)
            {
                let message = format!("job '{full}' is already defined at {}", r.position(*first));
                let first = (*first, "first defined here");
                r.wrong_beside::<()>(name.span(), first, message, "rename or remove one of them");
                return Some(());
            }
            let mut plan = JobPlan::new(full.clone(), Vec::new());
            plan.log = log.clone();
            plan.instance_of = number.map(|_| base.clone());
            plan.definition = definition;
            let echo = number.is_some_and(|n| n > 1);
            // What is wrong with one instance is most often wrong with all: it is told once.
            let known = echo && r.errors() > before;
            r.instance = number;
            let job = r.quiet(known, |r| r.within(base.as_str(), |r| read(r, plan, name, table)));
            r.instance = None;
            if let (2, Some(span)) = (number.unwrap_or_default(), job.main) {
                r.within(&format!("{base}.main"), |r| {
                    let help = "remove main or instances";
                    r.wrong::<()>(span, "a main job with several instances", help)
                });
            }
            self.taken.insert(full.as_str().to_owned(), at);
            self.all.push(PlacedJob { job, at, table_name: base.to_string(), echo });
        }
        self.taken.insert(base.as_str().to_owned(), at);
        Some(())
    }
}

/// How many instances the table asks for; a wrong number is told when the key is read.
fn instances(table: &DeTable<'_>) -> Option<u32> {
    let (_, value) = table.iter().find(|(key, _)| key.get_ref() == "instances")?;
    let DeValue::Integer(number) = value.get_ref() else { return None };
    let count = as_i64(number).and_then(|count| u32::try_from(count).ok())?;
    (1..=MOST_INSTANCES).contains(&count).then_some(count)
}

fn read<'t>(r: &mut Reader<'_>, plan: JobPlan, name: &KeyName<'t>, table: &'t DeTable<'t>) -> Job {
    let mut job = Job::new(plan);
    r.table(&JOB, table, &mut job);
    if !job.exec && job.advertise.is_none() && job.checks.is_empty() && r.is_whole() {
        let help = "add the command: exec = \"program argument\"";
        r.wrong::<()>(name.span(), "'exec' is missing", help);
    }
    job.merge_env();
    job.plan.notify |= health::wants_notify(&job.checks);
    sockets_and_fds(r, &job);
    stdio::check_tty(r, &job);
    job.plan.checks = std::mem::take(&mut job.checks).into_iter().map(|it| it.check).collect();
    let triggered = job.when.trigger.is_some();
    if triggered && let Some(span) = job.main {
        r.within("main", |r| {
            r.wrong::<()>(
                span,
                "a job that starts again and again cannot be the one whose end ends the node",
                "remove main, or start it once",
            )
        });
    }
    if let (Some(span), None) = (job.place, job.app) {
        r.within("place", |r| {
            r.wrong::<()>(span, "a job without app has no place in one", "add app = \"NAME\"")
        });
    }
    if let (Some(span), Some(_)) = (job.autostart, job.app) {
        r.within("autostart", |r| {
            let help = "use place = { start_sequence = 0 } to leave it out of the start of its app";
            r.wrong::<()>(span, "a job with app starts when its app does", help)
        });
    }
    if (job.plan.main || triggered || job.when.is_hook()) && !job.restart {
        job.plan.restart = Restart::on(RestartOn::Never);
    }
    job
}

/// Sockets are handed over from descriptor 3 on; one to be written to cannot be among them.
fn sockets_and_fds(r: &mut Reader<'_>, job: &Job) {
    if let Some(span) = job.sockets.get(MOST_SOCKETS) {
        let message = format!("{} sockets, more than {MOST_SOCKETS}", job.sockets.len());
        let help = "a process can be given no more: divide them between jobs";
        r.within("sockets", |r| r.wrong::<()>(*span, message, help));
    }
    let sockets = u32::try_from(job.plan.sockets.len()).unwrap_or(u32::MAX);
    for it in &job.checks {
        if let Probe::Fd(fd) = it.check.probe
            && fd < sockets.saturating_add(3)
        {
            let message = format!("descriptor {fd} is one of the job's {sockets} sockets");
            let help = format!("use {} or above", sockets.saturating_add(3));
            r.within("health.fd", |r| r.wrong::<()>(it.span, message, help));
        }
    }
}
