//! How a profile goes through the fleet, in `mainstay rollout status`.

use super::status::{first_line, plain};
use crate::term::Tint;
use mainstay_core::name::Name;
use mainstay_wire::api::{WaveNodeStatus, WaveStatus};

pub(super) fn line(profile: &Name, waves: &WaveStatus) -> (String, Tint) {
    let version = waves.version.as_ref().map_or("-", |it| it.text.as_str());
    let (wave, of) = (waves.wave.unwrap_or(0), waves.waves);
    let (stands, tint) = match waves.state.as_str() {
        "storing" => (format!("version {version} goes to every disk"), Tint::Yellow),
        "wave" => (format!("version {version}, wave {wave} of {of}"), Tint::Yellow),
        "resting" => (format!("version {version}, before wave {wave} of {of}"), Tint::Yellow),
        "applied" => (format!("version {version} everywhere"), Tint::Green),
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

pub(super) fn node(node: &WaveNodeStatus) -> Vec<(String, Tint)> {
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
