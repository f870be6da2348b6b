//! `mainstay rollout`: what is rolled out, and what is to be done about it.

pub(super) mod status;
mod units;
mod waves;

use crate::{
    args::{RolloutAction, RolloutArgs},
    client::{Client, PROMPT, read},
    failure::{Failure, NOT_AS_DESIRED, USAGE},
    term::{Page, Tint, print_json},
};
use mainstay_core::name::Name;
use mainstay_net::percent::segment;
use mainstay_wire::api::{
    ProfileHistory, RefreshRequest, RollbackRequest, RolloutDone, RolloutHistory, RolloutPreview,
    RolloutStatus,
};
use serde_json::{Value, json};
use std::time::Duration;

/// Sources are asked for a preview, which takes its time.
const PREVIEW: Duration = Duration::from_secs(60);

pub(crate) fn rollout(args: &RolloutArgs) -> Result<i32, Failure> {
    fits(args)?;
    match args.action {
        RolloutAction::Status => show(args),
        RolloutAction::Plan => plan(args),
        RolloutAction::Diff => diff(args),
        RolloutAction::History => history(args),
        RolloutAction::Refresh => refresh(args),
        RolloutAction::Rollback => rollback(args),
        RolloutAction::Pause => {
            switch(args, "pause", "no update begins until: mainstay rollout resume")
        }
        RolloutAction::Resume => switch(args, "resume", "updates begin again"),
        RolloutAction::Units => units::units(args),
    }
}

/// What is typed beside an action has to mean something to it.
fn fits(args: &RolloutArgs) -> Result<(), Failure> {
    use RolloutAction::{Diff, History, Plan, Refresh, Rollback, Units};
    let action = args.action;
    let wrong =
        |what: &str| Err(Failure::new(USAGE, format!("{what} means nothing to this action")));
    if args.profile.is_some() && !matches!(action, Plan | Refresh | History | Rollback | Diff) {
        return wrong("a profile");
    }
    if args.version.is_some() && !matches!(action, Rollback | Diff) {
        return wrong("a version");
    }
    if args.force && !matches!(action, Refresh | Rollback) {
        return wrong("--force");
    }
    if args.install.is_some() && action != Units {
        return wrong("--install");
    }
    Ok(())
}

fn show(args: &RolloutArgs) -> Result<i32, Failure> {
    let body = Client::of(&args.node)?.get("/v1/rollout")?.or_told(args.json.json)?;
    let rollout: RolloutStatus = read(&body)?;
    match args.json.json {
        true => print_json(&body)?,
        false => status::page(&rollout).show()?,
    }
    Ok(if rollout.has_failed() { NOT_AS_DESIRED } else { 0 })
}

fn query(pairs: &[(&str, Option<&String>)]) -> String {
    let given =
        pairs.iter().filter_map(|(key, value)| Some(format!("{key}={}", segment((*value)?))));
    let given: Vec<String> = given.collect();
    if given.is_empty() { String::new() } else { format!("?{}", given.join("&")) }
}

fn plan(args: &RolloutArgs) -> Result<i32, Failure> {
    let path = format!("/v1/rollout/plan{}", query(&[("profile", args.profile.as_ref())]));
    preview(args, &path, "nothing would change")
}

fn diff(args: &RolloutArgs) -> Result<i32, Failure> {
    let of = [("profile", args.profile.as_ref()), ("version", args.version.as_ref())];
    let nothing = match args.profile {
        None => "every file is as it was made",
        Some(_) => "nothing would change",
    };
    preview(args, &format!("/v1/rollout/diff{}", query(&of)), nothing)
}

fn preview(args: &RolloutArgs, path: &str, nothing: &str) -> Result<i32, Failure> {
    let answer = Client::of(&args.node)?.get_within(path, PREVIEW)?;
    let body = answer.or_told(args.json.json)?;
    let preview: RolloutPreview = read(&body)?;
    let edited = args.action == RolloutAction::Diff && args.profile.is_none();
    match args.json.json {
        true => print_json(&body)?,
        false => differences(&preview, nothing, edited).show()?,
    }
    Ok(0)
}

/// `edited`: what differs is not going to be done by anybody.
fn differences(preview: &RolloutPreview, nothing: &str, edited: bool) -> Page {
    let mut page = Page::new();
    for profile in &preview.changed {
        let version = preview.versions.iter().find(|it| it.profile == *profile);
        let version = version.map_or("", |it| it.version.text.as_str());
        page.tinted_line(&[(&format!("~ profile {profile}  {version}"), Tint::Yellow)]);
    }
    for file in &preview.files {
        page.tinted_line(&[(&format!("~ {} ({})", file.destination, file.template), Tint::Yellow)]);
        for line in file.difference.lines() {
            let tint = match line.as_bytes().first() {
                Some(b'+') => Tint::Green,
                Some(b'-') => Tint::Red,
                Some(b'@') => Tint::Cyan,
                _ => Tint::Plain,
            };
            page.tinted_line(&[("  ", Tint::Plain), (line, tint)]);
        }
    }
    if page.is_empty() {
        page.line(nothing);
    } else if !edited && !preview.services.is_empty() {
        page.line(format!("then told, one after the other: {}", listed(&preview.services)));
    } else if edited {
        page.line(
            "somebody has edited it: the next update fails unless it is asked for with --force",
        );
    }
    preview.notes.iter().for_each(|note| page.line(format!("note: {note}")));
    page
}

fn listed(names: &[Name]) -> String {
    names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
}

fn history(args: &RolloutArgs) -> Result<i32, Failure> {
    let path = format!("/v1/rollout/history{}", query(&[("profile", args.profile.as_ref())]));
    let body = Client::of(&args.node)?.get(&path)?.or_told(args.json.json)?;
    let history: RolloutHistory = read(&body)?;
    if args.json.json {
        print_json(&body)?;
        return Ok(0);
    }
    let mut page = Page::new();
    let rows: Vec<_> = history.profiles.iter().flat_map(versions).collect();
    page.table(&["PROFILE", "VERSION", "APPLIED", ""], &rows);
    page.show()?;
    Ok(0)
}

fn versions(profile: &ProfileHistory) -> Vec<Vec<(String, Tint)>> {
    let row = |version: &str, at: &str, note: &str, tint| {
        let plain = |text: &str| (text.to_owned(), Tint::Plain);
        let at = &status::to_the_second(at);
        vec![plain(profile.profile.as_str()), plain(version), plain(at), (note.to_owned(), tint)]
    };
    let refused = profile.refused.iter().map(|it| row(&it.text, "-", "refused", Tint::Red));
    let applied = profile.applied.iter();
    let applied = applied.map(|it| row(&it.version.text, &it.applied_at, "applied", Tint::Green));
    let earlier = profile.earlier.iter();
    let earlier = earlier.map(|it| row(&it.version.text, &it.applied_at, "", Tint::Plain));
    refused.chain(applied).chain(earlier).collect()
}

fn refresh(args: &RolloutArgs) -> Result<i32, Failure> {
    let profile = args.profile.as_deref().map(name).transpose()?;
    let request = json!(RefreshRequest { profile: profile.clone(), force: args.force });
    ask(args, "refresh", profile.as_ref(), &request)
}

fn rollback(args: &RolloutArgs) -> Result<i32, Failure> {
    let profile = match &args.profile {
        Some(profile) => name(profile)?,
        None => only_profile(args)?,
    };
    let (version, force) = (args.version.clone(), args.force);
    let request = json!(RollbackRequest { profile: profile.clone(), version, force });
    ask(args, "rollback", Some(&profile), &request)
}

fn name(text: &str) -> Result<Name, Failure> {
    Name::new(text).map_err(|_| Failure::failed(format!("there is no profile '{text}'")))
}

/// Where there is one only it need not be named.
fn only_profile(args: &RolloutArgs) -> Result<Name, Failure> {
    let body = Client::of(&args.node)?.get("/v1/rollout")?.or_told(args.json.json)?;
    let rollout: RolloutStatus = read(&body)?;
    let names: Vec<Name> = rollout.profiles.into_iter().map(|it| it.name).collect();
    match names.as_slice() {
        [one] => Ok(one.clone()),
        _ => Err(Failure::new(USAGE, format!("name the profile: {}", listed(&names)))),
    }
}

fn ask(
    args: &RolloutArgs,
    action: &str,
    profile: Option<&Name>,
    body: &Value,
) -> Result<i32, Failure> {
    let (client, patience) = (Client::of(&args.node)?, args.wait.patience());
    let path = format!("/v1/rollout/{action}?wait={}ms", patience.as_millis());
    let answer = client.post(&path, body, patience + PROMPT)?;
    if !answer.is_ok() && !args.json.json {
        waves::tell_open(&client, profile)?;
    }
    let body = answer.or_told(args.json.json)?;
    if args.json.json {
        print_json(&body)?;
        return Ok(0);
    }
    let done: RolloutDone = read(&body)?;
    let mut page = Page::new();
    for it in &done.applied {
        match done.rollout.in_waves(Some(&it.profile)).next() {
            Some((name, waves)) => waves::tell(&mut page, name, waves),
            None => {
                let (profile, version) = (&it.profile, &it.version.text);
                page.line(format!("profile {profile}: version {version} is applied"));
            }
        }
    }
    if page.is_empty() {
        page.line(if patience.is_zero() { "it is under way" } else { "nothing has changed" });
    }
    page.show()?;
    Ok(0)
}

fn switch(args: &RolloutArgs, action: &str, told: &str) -> Result<i32, Failure> {
    let answer =
        Client::of(&args.node)?.post_again(&format!("/v1/rollout/{action}"), &json!({}), PROMPT)?;
    let body = answer.or_told(args.json.json)?;
    if args.json.json {
        print_json(&body)?;
        return Ok(0);
    }
    let rollout: RolloutStatus = read(&body)?;
    let mut page = Page::new();
    page.line(told);
    if action == "pause" && !rollout.is_idle() {
        page.line("what is under way is finished first");
    }
    page.show()?;
    Ok(0)
}
