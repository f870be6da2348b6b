//! How a profile goes through the fleet: in `mainstay rollout status`, and for those who have asked
//! for a version.

use super::status::{first_line, plain};
use crate::{
    client::{Client, read},
    failure::Failure,
    term::{Page, Tint},
};
use mainstay_core::name::Name;
use mainstay_wire::api::{RolloutStatus, WaveNodeStatus, WaveStatus};

/// What each node has answered to a version that is under way, or has come back: somebody has asked
/// for it, and did not get it.
pub(super) fn tell_open(client: &Client, profile: Option<&Name>) -> Result<(), Failure> {
    let answer = client.get("/v1/rollout").and_then(|it| read(&it.into_result()?));
    // Why it was not done is the answer; this is only told beside it.
    let Ok::<RolloutStatus, _>(rollout) = answer else { return Ok(()) };
    let is_open = |waves: &WaveStatus| waves.under_way || waves.state == "back";
    let mut page = Page::new();
    for (name, waves) in rollout.in_waves(profile).filter(|(_, waves)| is_open(waves)) {
        tell(&mut page, name, waves);
    }
    page.show()
}

/// How far a version is, and what each node has answered.
pub(super) fn tell(page: &mut Page, profile: &Name, waves: &WaveStatus) {
    let (line, tint) = line(profile, waves);
    page.tinted_line(&[(&line, tint)]);
    let rows: Vec<_> = waves.nodes.iter().map(node).collect();
    page.table(&["NODE", "WAVE", "STATE", "VERSION", "NOTE"], &rows);
}

fn line(profile: &Name, waves: &WaveStatus) -> (String, Tint) {
    let version = waves.version.as_ref().map_or("-", |it| it.text.as_str());
    let (wave, of) = (waves.wave.unwrap_or(0), waves.waves);
    let (stands, tint) = match waves.state.as_str() {
        "storing" => (format!("version {version} goes to every disk"), Tint::Yellow),
        "wave" => (format!("version {version}, wave {wave} of {of}"), Tint::Yellow),
        "resting" => (format!("version {version}, before wave {wave} of {of}"), Tint::Yellow),
        "applied" => (format!("version {version} everywhere{}", by_hand(waves)), Tint::Green),
        "back" => {
            let node = waves.failed_on.as_ref().map_or("a node", Name::as_str);
            let why = match &waves.failure {
                Some(failure) => format!("failed on {node}: {}", first_line(failure)),
                None => format!("failed: {node} was lost in its wave"),
            };
            (format!("back from version {version}, which {why}"), Tint::Red)
        }
        _ => ("no version yet".to_owned(), Tint::Yellow),
    };
    let by = match &waves.conductor {
        Some(node) => format!("{node} asks the source"),
        None => "no master is followed".to_owned(),
    };
    match waves.minority {
        true => (
            format!(
                "{profile}: {stands}; this node sees half of the fleet or less: all stays as it is"
            ),
            Tint::Red,
        ),
        false => (format!("{profile}: {stands}; {by}"), tint),
    }
}

/// What somebody has rolled back is not applied again by itself.
fn by_hand(waves: &WaveStatus) -> String {
    match &waves.rolled_back {
        Some(version) => format!(", rolled back by hand from {}", version.text),
        None => String::new(),
    }
}

fn node(node: &WaveNodeStatus) -> Vec<(String, Tint)> {
    let tint = match node.state.as_str() {
        "applied" => Tint::Green,
        "failed" | "pending" | "lost" => Tint::Red,
        _ => Tint::Yellow,
    };
    let wave = node.wave.map_or_else(|| "-".to_owned(), |it| it.to_string());
    let version = node.applied.as_ref().map_or("-", |it| it.text.as_str());
    vec![
        plain(node.name.as_str()),
        plain(wave),
        (node.state.clone(), tint),
        plain(version),
        (node.failure.as_deref().map(first_line).unwrap_or_default(), Tint::Yellow),
    ]
}
