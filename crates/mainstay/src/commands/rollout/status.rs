//! `mainstay rollout status`

use super::waves;
use crate::term::{self, Page, Tint};
use mainstay_core::name::Name;
use mainstay_wire::api::{
    ProfileStatus, RolloutFailureStatus, RolloutStatus, ServiceStatus, TemplateStatus,
};
use std::time::Duration;

pub(crate) fn page(rollout: &RolloutStatus) -> Page {
    let mut page = Page::new();
    for line in lines(rollout) {
        page.tinted_line(&[(&line.0, line.1)]);
    }
    let rows: Vec<_> = rollout.profiles.iter().map(profile).collect();
    page.table(&["PROFILE", "STATE", "VERSION", "AGE", "SOURCE", "NOTE"], &rows);
    for (name, waves) in rollout.in_waves(None) {
        waves::tell(&mut page, name, waves);
    }
    let rows: Vec<_> = rollout.templates.iter().map(template).collect();
    page.table(&["TEMPLATE", "STATE", "FILE", "PROFILES"], &rows);
    if !rollout.services.is_empty() {
        let rows: Vec<_> = rollout.services.iter().map(service).collect();
        page.table(&["SERVICE", "STATE", "TELLS", "TEMPLATES", "NOTE"], &rows);
    }
    page
}

/// How it stands, in a line or two: `mainstay status` shows the same.
pub(crate) fn lines(rollout: &RolloutStatus) -> Vec<(String, Tint)> {
    let tint = match rollout.state.as_str() {
        "running" => Tint::Green,
        "pending" | "failed" => Tint::Red,
        _ => Tint::Yellow,
    };
    let doing = rollout.doing.as_ref().map(|doing| match &rollout.subject {
        Some(subject) => format!(": {doing} {subject}"),
        None => format!(": {doing}"),
    });
    let paused = if rollout.paused && rollout.state != "paused" { ", paused" } else { "" };
    let mut lines =
        vec![(format!("rollout {}{}{paused}", rollout.state, doing.unwrap_or_default()), tint)];
    lines.extend(rollout.failure.iter().map(|it| (failure(it), Tint::Red)));
    if let Some(why) = rollout.update.as_ref().and_then(|it| it.failure.as_ref()) {
        lines.push((format!("it goes back: {}", first_line(why)), Tint::Red));
    }
    lines
}

fn failure(failure: &RolloutFailureStatus) -> String {
    let what = match (&failure.profile, &failure.version) {
        (Some(profile), Some(version)) => format!("{profile}: version {version} failed: "),
        // It names itself.
        (Some(_), None) => String::new(),
        (None, _) => "the configuration could not be applied: ".to_owned(),
    };
    let so = match (failure.adrift, failure.is_final) {
        (true, _) => "; the way back failed as well: what is in place is not certain",
        (false, true) => "; its time is over",
        (false, false) => "",
    };
    let (why, since) = (first_line(&failure.failure), to_the_second(&failure.since));
    format!("{what}{why} (since {since}{so})")
}

/// People need no parts of a second.
pub(super) fn to_the_second(stamp: &str) -> String {
    stamp.split_once('.').map_or_else(|| stamp.to_owned(), |(whole, _)| format!("{whole}Z"))
}

/// A difference goes over many.
pub(super) fn first_line(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    if lines.next().is_some() { format!("{first} …") } else { first.to_owned() }
}

pub(super) fn plain(text: impl Into<String>) -> (String, Tint) {
    (text.into(), Tint::Plain)
}

fn profile(profile: &ProfileStatus) -> Vec<(String, Tint)> {
    let tint = match profile.state.as_str() {
        "applied" => Tint::Green,
        "updating" | "unknown" => Tint::Yellow,
        _ => Tint::Red,
    };
    let version = profile.applied.as_ref().map_or("-", |it| it.text.as_str());
    let age = profile.age.map_or_else(|| "-".to_owned(), |it| term::age(Duration::from_secs(it)));
    let note = match (&profile.error, &profile.refused) {
        (Some(error), _) => first_line(error),
        (None, Some(refused)) => format!("refused: {}", refused.text),
        (None, None) => String::new(),
    };
    vec![
        plain(profile.name.as_str()),
        (profile.state.clone(), tint),
        plain(version),
        plain(age),
        plain(profile.source.as_str()),
        (note, Tint::Yellow),
    ]
}

fn template(template: &TemplateStatus) -> Vec<(String, Tint)> {
    let state = match (template.in_place, &template.digest) {
        (true, _) => ("in place", Tint::Green),
        (false, Some(_)) => ("uncertain", Tint::Red),
        (false, None) => ("not made yet", Tint::Yellow),
    };
    vec![
        plain(template.name.as_str()),
        (state.0.to_owned(), state.1),
        plain(template.destination.as_str()),
        plain(listed(&template.profiles)),
    ]
}

fn service(service: &ServiceStatus) -> Vec<(String, Tint)> {
    let tint = match service.state.as_str() {
        "idle" => Tint::Plain,
        "confirmed" => Tint::Green,
        _ => Tint::Yellow,
    };
    let target = match &service.target {
        Some(target) => format!("{} {target}", service.kind),
        None => service.kind.clone(),
    };
    vec![
        plain(service.name.as_str()),
        (service.state.clone(), tint),
        plain(target),
        plain(listed(&service.templates)),
        (service.note.clone().unwrap_or_default(), Tint::Yellow),
    ]
}

fn listed(names: &[Name]) -> String {
    names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
}
