//! Once nothing disturbs it, what nobody wants rests, and what is wanted runs, unless it has ended
//! by itself, could not be started, or has no home, or that is so of a required job before it in its
//! app: its start was given up there; or somebody has stopped it where it ran, by hand.

use crate::fleet::Observation;
use mainstay_core::{
    fleet::{JobStanding, Strategy, placement::FULL},
    job::Desired,
    name::Name,
    plan::Distribution,
};

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let Some((_, master)) = seen.master() else { return Vec::new() };
    let mut broken = Vec::new();
    for job in seen.jobs() {
        let runs = seen.homes(job).next().is_some();
        let by_hand = seen.nodes.values().any(|it| it.by_hand.contains(job));
        let stopped = seen.nodes.values().any(|it| it.stopped_by_hand.contains(job));
        match master.wishes.of(job).map(|it| it.desired) {
            Some(Desired::Run)
                if !runs && !stopped && !is_excused(seen, job) && !is_held_back(seen, job) =>
            {
                broken.push(format!("{job} is wanted and rests: {:?}", seen.standing(job)));
            }
            Some(Desired::Rest | Desired::Disabled) if runs && !by_hand => {
                broken.push(format!("{job} runs and is not wanted"));
            }
            Some(Desired::Run | Desired::Rest | Desired::Disabled) | None => {}
        }
    }
    broken
}

fn is_excused(seen: &Observation, job: &Name) -> bool {
    match seen.standing(job) {
        Some(JobStanding::Ended { .. } | JobStanding::OrderFailed { .. }) => true,
        Some(JobStanding::NotPlaced(_)) => !has_home(seen, job),
        None | Some(JobStanding::Rest | JobStanding::Up { .. } | JobStanding::Lost { .. }) => false,
    }
}

/// A job that has to run before it does not.
fn is_held_back(seen: &Observation, job: &Name) -> bool {
    let Some(rules) = seen.catalogue.jobs.get(job) else { return false };
    let place = &rules.place;
    seen.catalogue.members(&rules.app).any(|(other, it)| {
        let before = it.place.start_sequence < place.start_sequence;
        let ended_well = matches!(seen.standing(other), Some(JobStanding::Ended { well: true }));
        before && it.place.required && !ended_well && is_excused(seen, other)
    })
}

/// Whether there is room for it on a node that may have it. Where jobs of an app are to be together
/// the master knows better.
fn has_home(seen: &Observation, job: &Name) -> bool {
    let Some(rules) = seen.catalogue.jobs.get(job) else { return false };
    let Some(app) = seen.catalogue.app(&rules.app) else { return false };
    let machines = seen.machines();
    let local = app.strategy.unwrap_or(seen.rules.strategy) == Strategy::Local;
    // By `local` it has its home only where somebody has asked for it.
    app.distribution == Distribution::Any
        && !local
        && seen.nodes.values().any(|it| {
            let load = machines.get(it.machine.as_str()).copied().unwrap_or_default();
            !it.drained && load + rules.place.load <= FULL
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{invariants::example, scenario::name};
    use mainstay_core::fleet::{AskedBy, CopyState, Number};

    #[test]
    fn it_can_fail() {
        let mut seen = example::fleet();
        let number = Number { term: example::term(1, "a"), counter: 1 };
        let a = seen.nodes.get_mut(&name("a")).expect("a node");
        a.wishes.write(number.clone(), &name("web"), AskedBy::User, Desired::Run, None);
        assert_eq!(broken(&seen), Vec::<String>::new());
        let b = seen.nodes.get_mut(&name("b")).expect("a node");
        b.jobs.insert(name("web"), CopyState::Stopped);
        assert_eq!(broken(&seen), ["web is wanted and rests: None"]);
        assert!(has_home(&seen, &name("web")));
        let mut seen = example::fleet();
        let a = seen.nodes.get_mut(&name("a")).expect("a node");
        a.wishes.write(number, &name("web"), AskedBy::User, Desired::Rest, None);
        assert_eq!(broken(&seen), ["web runs and is not wanted"]);
    }
}
