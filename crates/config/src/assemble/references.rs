//! What one table says of another: apps and ways to service discovery that must be there.

use crate::{
    diag::nearest,
    keys::job::PlacedJob,
    reader::{Place, Reader},
};
use mainstay_core::{
    name::Name,
    plan::{AppPlan, WatchPlan, Watched},
};
use std::collections::BTreeSet;

/// Who is announced or asks about a service needs somewhere to do so.
pub(super) fn need_discovery(
    r: &mut Reader<'_>,
    nowhere: bool,
    jobs: &[PlacedJob],
    watches: &[(WatchPlan, Place)],
) {
    if !nowhere {
        return;
    }
    let help = "add [discovery] with engine = \"consul\" or engine = \"file\"";
    for placed in jobs.iter().filter(|it| !it.echo) {
        let Some(span) = placed.job.advertise else { continue };
        r.file = placed.at.file;
        r.within(&format!("jobs.{}.advertise", placed.table_name), |r| {
            r.wrong::<()>(span, "there is nowhere to announce it", help)
        });
    }
    for (watch, at) in watches.iter().filter(|(it, _)| matches!(it.of, Watched::Service { .. })) {
        r.file = at.file;
        r.within(&format!("watches.{}", watch.name), |r| {
            r.wrong::<()>(at.span, "there is nobody to ask", help)
        });
    }
}

/// Every app that a job names exists, and every app has a job.
pub(super) fn membership(r: &mut Reader<'_>, apps: &[(AppPlan, Place)], jobs: &[PlacedJob]) {
    for placed in jobs.iter().filter(|it| !it.echo) {
        let (Some(app), Some(span)) = (&placed.job.plan.app, placed.job.app) else { continue };
        if apps.iter().any(|(known, _)| known.name == *app) {
            continue;
        }
        r.file = placed.at.file;
        let help = match nearest(app.as_str(), apps.iter().map(|(app, _)| app.name.as_str())) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("add the table [apps.{app}]"),
        };
        r.within(&format!("jobs.{}.app", placed.table_name), |r| {
            r.absent::<()>(span, format!("there is no app '{app}'"), help)
        });
    }
    let used: BTreeSet<&Name> = jobs.iter().filter_map(|it| it.job.plan.app.as_ref()).collect();
    for (app, at) in apps.iter().filter(|(app, _)| !used.contains(&app.name)) {
        r.file = at.file;
        r.within(&format!("apps.{}", app.name), |r| {
            let help = format!("add app = \"{}\" to the jobs that belong to it", app.name);
            r.warn(at.span, "no job belongs to this app", help);
        });
    }
}
