//! Names that service discovery and jobs are given, and that two must not share: ids in the
//! catalogue, and variables of watches.

use crate::{job::Placed, node::Place, reader::Reader};
use mainstay_core::{name::Name, plan::WatchPlan};
use std::collections::{BTreeMap, BTreeSet};

/// Two jobs with one entry would take turns in it, and the first that stops would remove it.
pub(crate) fn one_job_for_each_entry(r: &mut Reader<'_>, node: &str, jobs: &[Placed]) {
    let mut users: BTreeMap<String, &Name> = BTreeMap::new();
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for placed in jobs {
        let plan = &placed.job.plan;
        let (Some(advertise), Some(span)) = (&plan.advertise, placed.job.advertise) else {
            continue;
        };
        let id = advertise.id.clone().unwrap_or_else(|| format!("{}-{node}", plan.name));
        let message = format!("'{id}' is already the id of job");
        let Some(user) = users.insert(id, &plan.name) else { continue };
        // Of many instances with one id the second says it all.
        if !told.insert(&placed.written) {
            continue;
        }
        r.file = placed.at.file;
        let help = if placed.echo {
            "give each instance its own: put {instance} into the id, or leave it out"
        } else {
            "use another id, or leave it out"
        };
        r.within(&format!("jobs.{}.advertise", placed.written), |r| {
            r.wrong::<()>(span, format!("{message} '{user}'"), help)
        });
    }
}

/// The lists of two watches in one variable: a job is given one of them only.
pub(crate) fn one_watch_for_each_variable(r: &mut Reader<'_>, watches: &[(WatchPlan, Place)]) {
    let mut users: BTreeMap<String, &Name> = BTreeMap::new();
    for (watch, at) in watches {
        let word = format!("MAINSTAY_WATCH_{}", watch.name.in_variables());
        let both = [format!("{word}_FILE"), word];
        let taken = both.iter().find_map(|word| Some((word, *users.get(word)?)));
        if let Some((word, user)) = taken {
            r.file = at.file;
            let message = format!("jobs find watch '{user}' in {word} as well");
            r.within(&format!("watches.{}", watch.name), |r| {
                r.warn(at.span, message, "rename one of them");
            });
        }
        users.extend(both.map(|word| (word, &watch.name)));
    }
}
