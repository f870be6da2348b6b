//! What there may be one of: the user of an address, of an id in the catalogue, and of a variable.

use crate::{
    keys::job::PlacedJob,
    reader::{Place, Reader},
};
use mainstay_core::{name::Name, plan::WatchPlan};
use std::collections::{BTreeMap, BTreeSet};

/// Two jobs with one entry would take turns in it, and the first that stops would remove it.
pub(crate) fn one_job_for_each_entry(r: &mut Reader<'_>, node: &str, jobs: &[PlacedJob]) {
    let mut users: BTreeMap<String, (&Name, Place)> = BTreeMap::new();
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for placed in jobs {
        let plan = &placed.job.plan;
        let (Some(advertise), Some(span)) = (&plan.advertise, placed.job.advertise) else {
            continue;
        };
        let id = advertise.id.clone().unwrap_or_else(|| format!("{}-{node}", plan.name));
        let message = format!("'{id}' is already the id of job");
        let here = Place { file: placed.at.file, span };
        let Some((user, first)) = users.insert(id, (&plan.name, here)) else { continue };
        // Of many instances with one id the second says it all.
        if !told.insert(&placed.table_name) {
            continue;
        }
        r.file = placed.at.file;
        let help = if placed.echo {
            "give each instance its own: put {instance} into the id, or leave it out"
        } else {
            "use another id, or leave it out"
        };
        r.within(&format!("jobs.{}.advertise", placed.table_name), |r| {
            let message = format!("{message} '{user}'");
            if placed.echo {
                return r.wrong::<()>(span, message, help);
            }
            r.wrong_beside(span, (first, "used here"), message, help)
        });
    }
}

/// The lists of two watches in one variable: a job is given one of them only.
pub(crate) fn one_watch_for_each_variable(r: &mut Reader<'_>, watches: &[(WatchPlan, Place)]) {
    let mut users: BTreeMap<String, (&Name, Place)> = BTreeMap::new();
    for (watch, at) in watches {
        let word = format!("MAINSTAY_WATCH_{}", watch.name.in_variables());
        let both = [format!("{word}_FILE"), word];
        let taken = both.iter().find_map(|word| Some((word, *users.get(word)?)));
        if let Some((word, (user, first))) = taken {
            r.file = at.file;
            let message = format!("jobs find watch '{user}' in {word} as well");
            r.within(&format!("watches.{}", watch.name), |r| {
                let first = (first, "the other watch");
                r.warn_beside(at.span, first, message, "rename one of them");
            });
        }
        users.extend(both.map(|word| (word, (&watch.name, *at))));
    }
}

pub(crate) fn one_user_of_each_address(r: &mut Reader<'_>, jobs: &[PlacedJob]) {
    let mut users: BTreeMap<&str, (&Name, Place)> = BTreeMap::new();
    let mut told: BTreeSet<(&str, &str)> = BTreeSet::new();
    for placed in jobs {
        let plan = &placed.job.plan;
        for (socket, span) in plan.sockets.iter().zip(&placed.job.sockets) {
            let here = Place { file: placed.at.file, span: *span };
            let Some((user, first)) = users.insert(&socket.address, (&plan.name, here)) else {
                continue;
            };
            // Of many instances with one address the second says it all.
            if !told.insert((&placed.table_name, &socket.name)) {
                continue;
            }
            r.file = placed.at.file;
            let message = format!("{} is already a socket of job '{user}'", socket.address);
            let path = format!("jobs.{}.sockets.{}", placed.table_name, socket.name);
            let help = if placed.echo {
                "give each instance its own: put {instance} into the address"
            } else {
                "use another address"
            };
            r.within(&path, |r| {
                if placed.echo {
                    return r.wrong::<()>(*span, message, help);
                }
                r.wrong_beside(*span, (first, "used here"), message, help)
            });
        }
    }
}
