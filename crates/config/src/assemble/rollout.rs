//! What is rolled out: profiles, templates and services, each referring to what is before it.

use super::{
    destinations,
    parts::{Part, merge, table},
};
use crate::{
    diag::nearest,
    keys::{
        Table,
        job::PlacedJob,
        rollout::{
            ROLLOUT, RolloutKeys, WrittenName,
            profile::{PROFILE, ProfileKeys},
            service::{PlacedService, SERVICE, ServiceKeys},
            template::{PlacedTemplate, TEMPLATE, TemplateKeys},
        },
    },
    reader::{Place, Reader, Span},
};
use mainstay_core::{
    name::Name,
    plan::{ProfilePlan, RolloutPlan, ServicePlan, ServiceTarget, TemplatePlan, WavePlan},
};
use std::collections::BTreeMap;

/// Of each kind.
const MOST: usize = 10_000;

/// The tables that are about it.
pub(super) struct RolloutParts<'p, 't> {
    pub(super) rollout: &'p [Part<'t>],
    pub(super) profiles: &'p [Part<'t>],
    pub(super) templates: &'p [Part<'t>],
    pub(super) services: &'p [Part<'t>],
}

/// `None`: nothing is rolled out.
pub(super) fn rollout(
    r: &mut Reader<'_>,
    parts: &RolloutParts<'_, '_>,
    jobs: &[PlacedJob],
) -> Option<RolloutPlan> {
    let RolloutParts { rollout, profiles, templates, services } = parts;
    if [rollout, profiles, templates, services].iter().all(|it| it.is_empty()) {
        return None;
    }
    let mut keys = RolloutKeys::default();
    merge(r, "rollout", rollout, |r, table| r.table(&ROLLOUT, table, &mut keys));
    let profiles: Vec<(ProfilePlan, Place)> =
        each(r, "profiles", profiles, &PROFILE, ProfileKeys::default, ProfileKeys::judge);
    let templates: Vec<(PlacedTemplate, Place)> =
        each(r, "templates", templates, &TEMPLATE, TemplateKeys::default, TemplateKeys::judge);
    let services: Vec<(PlacedService, Place)> =
        each(r, "services", services, &SERVICE, ServiceKeys::default, ServiceKeys::judge);
    if let (Some(part), true) = (rollout.first(), templates.is_empty()) {
        r.file = part.file;
        let help = "add [templates.NAME] with src and dst";
        r.within("rollout", |r| {
            r.warn(part.at, "nothing is rolled out: there is no template", help)
        });
    }
    let wave = wave(r, &keys);
    let profiles: Vec<ProfilePlan> = profiles.into_iter().map(|(plan, _)| plan).collect();
    destinations::judge(r, &templates, &profiles);
    let templates = with_profiles(r, templates, &profiles);
    let services = with_templates(r, services, &templates, jobs);
    Some(RolloutPlan {
        refresh_interval: keys.refresh_interval,
        failure_timeout: keys.failure_timeout,
        on_failure: keys.on_failure,
        signal_files: keys.signal_files,
        exit_on_failure: keys.exit_on_failure.unwrap_or(jobs.is_empty()),
        wave,
        cloudwatch: keys.cloudwatch,
        profiles,
        templates,
        services,
        configuration: r.files(),
    })
}

/// `None`: each node goes by itself.
fn wave(r: &mut Reader<'_>, keys: &RolloutKeys) -> Option<WavePlan> {
    if let (None, Some(at)) = (keys.wave, keys.pause_at) {
        r.file = at.file;
        r.within("rollout.pause", |r| {
            r.warn(at.span, "it does nothing without wave", "add wave, or remove it")
        });
    }
    let (size, pause) = (keys.wave?, keys.pause);
    r.in_fleet.then_some(WavePlan { size, pause })
}

/// Reads every table of one kind, in the order of the files.
fn each<K, T>(
    r: &mut Reader<'_>,
    kind: &str,
    parts: &[Part<'_>],
    keys: &'static Table<K>,
    new: fn() -> K,
    judge: impl Fn(K, Name, Span, &mut Reader<'_>) -> Option<T>,
) -> Vec<(T, Place)> {
    let one = kind.strip_suffix('s').unwrap_or(kind);
    let mut found: Vec<(T, Place)> = Vec::new();
    let mut seen: BTreeMap<Name, Place> = BTreeMap::new();
    for part in parts {
        r.file = part.file;
        for (name, value) in part.table {
            let at = Place { file: part.file, span: name.span().into() };
            r.within(kind, |r| {
                let valid = match Name::new(name.get_ref()) {
                    Ok(valid) => valid,
                    Err(error) => {
                        let help = format!("rename the {one}");
                        return r.wrong::<()>(name.span(), error.to_string(), help);
                    }
                };
                if seen.len() >= MOST {
                    let message = format!("more than {MOST} {kind}");
                    return r.wrong(name.span(), message, "divide them between nodes");
                }
                if let Some(first) = seen.get(&valid) {
                    let message =
                        format!("{one} '{valid}' is already defined at {}", r.position(*first));
                    let first = (*first, "first defined here");
                    let help = "rename or remove one of them";
                    return r.wrong_beside(name.span(), first, message, help);
                }
                seen.insert(valid.clone(), at);
                let from = table(r, name, value)?;
                let read = r.within(name.get_ref(), |r| {
                    let mut it = new();
                    r.table(keys, from, &mut it);
                    judge(it, valid, at.span, r)
                })?;
                found.push((read, at));
                Some(())
            });
        }
    }
    found
}

fn with_profiles(
    r: &mut Reader<'_>,
    templates: Vec<(PlacedTemplate, Place)>,
    profiles: &[ProfilePlan],
) -> Vec<TemplatePlan> {
    let known: Vec<&Name> = profiles.iter().map(|profile| &profile.name).collect();
    let fill = |r: &mut Reader<'_>, template: PlacedTemplate| {
        let mut plan = template.plan;
        let path = format!("templates.{}.profiles", plan.name);
        plan.profiles = found(r, &path, "profile", &template.profiles, &known);
        plan
    };
    templates.into_iter().map(|(template, _)| fill(r, template)).collect()
}

fn with_templates(
    r: &mut Reader<'_>,
    services: Vec<(PlacedService, Place)>,
    templates: &[TemplatePlan],
    jobs: &[PlacedJob],
) -> Vec<ServicePlan> {
    let known: Vec<&Name> = templates.iter().map(|template| &template.name).collect();
    let jobs: Vec<&Name> = jobs.iter().map(|it| &it.job.plan.name).collect();
    let mut plans = Vec::new();
    for (service, _) in services {
        let mut plan = service.plan;
        let path = format!("services.{}", plan.name);
        let names = &service.templates;
        plan.templates = found(r, &format!("{path}.templates"), "template", names, &known);
        if let Some(job) = service.job {
            let name = found(r, &format!("{path}.job"), "job", &[job], &jobs).pop();
            let Some(name) = name else { continue };
            plan.target = ServiceTarget::Job(name);
        }
        plans.push(plan);
    }
    plans
}

/// Those of the names that there are; the others are told.
fn found(
    r: &mut Reader<'_>,
    path: &str,
    kind: &str,
    names: &[WrittenName],
    known: &[&Name],
) -> Vec<Name> {
    let mut all: Vec<Name> = Vec::new();
    for written in names {
        r.file = written.at.file;
        match known.iter().find(|name| name.as_str() == written.name) {
            Some(name) if all.contains(name) => {}
            Some(name) => all.push((*name).clone()),
            None => {
                let message = format!("there is no {kind} '{}'", written.name);
                let help = match nearest(&written.name, known.iter().map(|name| name.as_str())) {
                    Some(near) => format!("did you mean '{near}'?"),
                    None => format!("add the table [{kind}s.{}]", written.name),
                };
                r.within(path, |r| r.absent::<()>(written.at.span, message, help));
            }
        }
    }
    all
}
