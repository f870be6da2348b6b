//! How a profile goes through a fleet in waves, in a sentence or two.

use crate::{
    fleet::{WaveAnswer, WaveProfile},
    name::Name,
    rollout::{WaveRecord, WaveStage},
};

/// What there is to know of it beside how it stands on this node.
#[must_use]
pub fn in_waves(profile: &WaveProfile, me: &Name) -> Vec<String> {
    let stands = match &profile.record {
        Some(record) => stands(profile, record),
        None => "the fleet has no version of it yet".to_owned(),
    };
    let asks = match &profile.conductor {
        Some(node) if node == me => None,
        Some(node) => Some(format!("{node} asks its source for the fleet")),
        None => Some("nobody asks its source: the fleet has no master".to_owned()),
    };
    let minority = (!profile.has_majority && profile.conductor.is_some()).then(|| {
        "this node sees half of the nodes or less: what it has stays, and nothing is decided here"
            .to_owned()
    });
    [Some(stands), minority, asks].into_iter().flatten().collect()
}

fn stands(profile: &WaveProfile, record: &WaveRecord) -> String {
    let (version, of) = (&record.version, record.waves.len());
    let waits = |is: fn(WaveAnswer) -> bool| {
        let open = profile.nodes.iter().filter(|it| is(it.answer(Some(record))));
        let names: Vec<&str> = open.map(|it| it.name.as_str()).collect();
        names.join(", ")
    };
    match &record.stage {
        WaveStage::Storing => {
            let lacking = waits(|it| it == WaveAnswer::Waiting);
            format!("version {version} goes to every disk first; not there yet: {lacking}")
        }
        WaveStage::Wave { at } => {
            let wave = record.waves.get(*at).map(|it| names(it)).unwrap_or_default();
            format!("version {version} is in wave {} of {of}: {wave}", at + 1)
        }
        WaveStage::Resting { next } => {
            format!("version {version} waits before wave {} of {of}", next + 1)
        }
        WaveStage::Applied => match &record.rolled_back {
            Some(unwanted) => format!(
                "version {version} is applied in the fleet, rolled back by hand from {unwanted}"
            ),
            None => format!("version {version} is applied in the fleet"),
        },
        WaveStage::Back(failure) => match &failure.failure {
            Some(why) => {
                format!("version {version} failed on {}: {why}: all go back", failure.node)
            }
            None => {
                let node = &failure.node;
                format!("version {version} failed: {node} was lost in its own wave: all go back")
            }
        },
    }
}

fn names(nodes: &[Name]) -> String {
    let names: Vec<&str> = nodes.iter().map(Name::as_str).collect();
    names.join(", ")
}
