//! From the texts to the plan: parse each file, merge what they say, and judge the whole.

mod conditions;
pub mod cycle;
mod destinations;
mod digest;
mod jobs;
mod parts;
mod references;
mod rollout;
mod single;
mod stop_time;
mod unique;

pub use single::single;

use crate::{
    Context, JobPlace, Loaded,
    diag::Errors,
    keys::{
        api::{self, API, Api},
        app::APP,
        containerpilot::CONTAINERPILOT,
        discovery::{DISCOVERY, DiscoveryKeys, WATCH, Watch},
        fleet::{FLEET, Fleet},
        job::PlacedJob,
        log::{LOG, Logging, NodeKeys},
        node::{self, NODE, Node},
        telemetry::{self, TELEMETRY, Telemetry},
    },
    reader::{Place, Reader, Span},
    source::Sources,
};
use mainstay_core::{
    name::Name,
    plan::{ApiPlan, AppPlan, ContainerPilotPlan, ExitRule, FleetPlan, Log, Plan, WatchPlan},
};
use parts::{Part, merge, table};
use rollout::RolloutParts;
use std::sync::Arc;

const MOST_APPS: usize = 1000;

const MOST_WATCHES: usize = 1000;

pub(crate) fn assemble(sources: &Sources, ctx: &Context) -> Result<Loaded, Errors> {
    let mut r = Reader::new(sources, ctx);
    let trees: Vec<_> = sources
        .iter()
        .map(|(file, source)| {
            r.file = file;
            (file, parts::tree(&mut r, &source.text))
        })
        .collect();
    let parts = parts::parts(&mut r, &trees);

    r.in_fleet = !parts.fleet.is_empty();
    let mut node = Node { plan: node::default(ctx), exit: None, stop_timeout: None, name: None };
    merge(&mut r, "node", &parts.node, |r, table| r.table(&NODE, table, &mut node));
    let own = NodeKeys::new(node.plan.log_level.clone());
    let mut log = Logging { log: Log::default(), node: Some(own) };
    merge(&mut r, "log", &parts.log, |r, table| r.table(&LOG, table, &mut log));
    let own = log.node.unwrap_or_default();
    let node_log = own.node_log(&log.log);
    node.plan.log_level = own.level;

    let mut watched = Telemetry::default();
    merge(&mut r, "telemetry", &parts.telemetry, |r, table| {
        r.table(&TELEMETRY, table, &mut watched);
    });
    let at = parts.telemetry.first().map(|it| Place { file: it.file, span: it.at });
    let telemetry = telemetry::judge(&mut r, watched, at);
    let mut containerpilot = (!parts.containerpilot.is_empty()).then(ContainerPilotPlan::default);
    if let Some(pilot) = &mut containerpilot {
        merge(&mut r, "containerpilot", &parts.containerpilot, |r, table| {
            r.table(&CONTAINERPILOT, table, pilot);
        });
    }
    let mut backend = DiscoveryKeys::default();
    merge(&mut r, "discovery", &parts.discovery, |r, table| {
        r.table(&DISCOVERY, table, &mut backend);
    });
    let discovery = parts.discovery.first().and_then(|part| {
        let at = part.at;
        r.file = part.file;
        r.within("discovery", |r| backend.judge(at, r))
    });
    let watches = watches(&mut r, &parts.watches);
    unique::one_watch_for_each_variable(&mut r, &watches);
    let mut api = Api::default();
    merge(&mut r, "api", &parts.api, |r, table| r.table(&API, table, &mut api));
    let api = api::judge(&mut r, api);

    let fleet = fleet(&mut r, &parts.fleet, &node);
    let apps = apps(&mut r, &parts.apps);
    let mut jobs = jobs::jobs(&mut r, &parts.jobs, &log.log);
    let tables = RolloutParts {
        rollout: &parts.rollout,
        profiles: &parts.profiles,
        templates: &parts.templates,
        services: &parts.services,
    };
    let rollout = rollout::rollout(&mut r, &tables, &jobs);
    conditions::resolve(&mut r, &mut jobs, &watches, rollout.as_ref());
    references::need_discovery(&mut r, parts.discovery.is_empty(), &jobs, &watches);
    references::membership(&mut r, &apps, &jobs);
    let apps = apps.into_iter().map(|(app, _)| app).collect();
    let places = jobs.iter().map(|it| place(&r, it)).collect();
    let (stop_at, stop_times) = (node.stop_timeout, stop_time::written(&jobs));
    let mut plan = judge(&mut r, node, jobs, apps, (api, rollout.is_some()));
    let longest_stop = stop_time::judge(&mut r, &mut plan, stop_at, &stop_times);
    plan.telemetry = telemetry;
    plan.containerpilot = containerpilot;
    plan.log = node_log;
    plan.watches = watches.into_iter().map(|(watch, _)| watch).collect();
    plan.discovery = discovery;
    plan.fleet = fleet.map(Box::new);
    plan.rollout = rollout.map(Arc::new);
    Ok(Loaded { warnings: r.finish()?, plan, places, longest_stop })
}

fn place(r: &Reader<'_>, it: &PlacedJob) -> JobPlace {
    let line = |span: Span| r.file_line(it.at.file, span.start);
    JobPlace { job: it.job.plan.name.clone(), at: line(it.at.span), when: it.job.when_at.map(line) }
}

fn fleet(r: &mut Reader<'_>, parts: &[Part<'_>], node: &Node) -> Option<FleetPlan> {
    let first = parts.first()?;
    let mut fleet = Fleet::default();
    merge(r, "fleet", parts, |r, table| r.table(&FLEET, table, &mut fleet));
    r.known_nodes = fleet.node_names();
    let at = Place { file: first.file, span: first.at };
    r.within("fleet", |r| fleet.judge(r, node, at))
}

fn watches(r: &mut Reader<'_>, parts: &[Part<'_>]) -> Vec<(WatchPlan, Place)> {
    let mut watches: Vec<(WatchPlan, Place)> = Vec::new();
    for part in parts {
        r.file = part.file;
        for (name, value) in part.table {
            let at = Place { file: part.file, span: name.span().into() };
            if watches.len() == MOST_WATCHES {
                let message = format!("more than {MOST_WATCHES} watches");
                r.within("watches", |r| r.wrong::<()>(at.span, message, "watch fewer services"));
                return watches;
            }
            r.within("watches", |r| {
                let valid = match Name::new(name.get_ref()) {
                    Ok(valid) => valid,
                    Err(error) => {
                        return r.wrong::<()>(name.span(), error.to_string(), "rename the watch");
                    }
                };
                if let Some((_, first)) = watches.iter().find(|(watch, _)| watch.name == valid) {
                    let message =
                        format!("watch '{valid}' is already defined at {}", r.position(*first));
                    let first = (*first, "first defined here");
                    let help = "rename or remove one of them";
                    return r.wrong_beside(name.span(), first, message, help);
                }
                let from = table(r, name, value)?;
                let plan = r.within(name.get_ref(), |r| {
                    let mut watch = Watch::default();
                    r.table(&WATCH, from, &mut watch);
                    watch.judge(valid, r)
                })?;
                watches.push((plan, at));
                Some(())
            });
        }
    }
    watches
}

fn apps(r: &mut Reader<'_>, parts: &[Part<'_>]) -> Vec<(AppPlan, Place)> {
    let mut apps: Vec<(AppPlan, Place)> = Vec::new();
    for part in parts {
        r.file = part.file;
        for (name, value) in part.table {
            let at = Place { file: part.file, span: name.span().into() };
            if apps.len() == MOST_APPS {
                let message = format!("more than {MOST_APPS} apps");
                r.within("apps", |r| r.wrong::<()>(at.span, message, "split them between nodes"));
                return apps;
            }
            r.within("apps", |r| {
                let valid = match Name::new(name.get_ref()) {
                    Ok(valid) => valid,
                    Err(error) => {
                        return r.wrong::<()>(name.span(), error.to_string(), "rename the app");
                    }
                };
                if let Some((_, first)) = apps.iter().find(|(app, _)| app.name == valid) {
                    let message =
                        format!("app '{valid}' is already defined at {}", r.position(*first));
                    let first = (*first, "first defined here");
                    let help = "rename or remove one of them";
                    return r.wrong_beside(name.span(), first, message, help);
                }
                let mut app = AppPlan::new(valid);
                let from = table(r, name, value)?;
                r.within(name.get_ref(), |r| r.table(&APP, from, &mut app));
                apps.push((app, at));
                Some(())
            });
        }
    }
    apps
}

/// What can only be said about the whole.
fn judge(
    r: &mut Reader<'_>,
    node: Node,
    jobs: Vec<PlacedJob>,
    apps: Vec<AppPlan>,
    (api, rolls_out): (ApiPlan, bool),
) -> Plan {
    unique::one_user_of_each_address(r, &jobs);
    unique::one_job_for_each_entry(r, &node.plan.name, &jobs);
    let main = jobs.iter().any(|it| it.job.plan.main);
    let mut plan = node.plan;
    plan.exit = match node.exit {
        None if main => ExitRule::Main,
        // Somebody means to come and ask, also when nothing runs.
        None if api.listen.is_some() || r.in_fleet || rolls_out => ExitRule::Never,
        None => ExitRule::All,
        Some((ExitRule::Main, at)) if !main => {
            r.file = at.file;
            let help = "add main = true to a job, or use \"all\", \"any\" or \"never\"";
            r.within("node.exit", |r| r.wrong::<()>(at.span, "no job is main", help));
            ExitRule::Main
        }
        Some((rule, _)) => rule,
    };
    if jobs.is_empty() && !rolls_out {
        r.nothing("there is no job", "add one: [jobs.NAME] with exec = \"program argument\"");
    }
    let jobs = jobs.into_iter().map(|it| it.job.plan).collect();
    Plan { apps, api, ..Plan::new(plan, jobs) }
}
