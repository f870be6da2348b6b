//! Once nothing disturbs it, what nobody wants rests, and what is wanted runs, unless it has ended
//! by itself or has no home.

use crate::fleet::Observation;
use mainstay_core::job::Desired;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let Some(master) = seen.nodes.values().find(|it| it.is_master) else { return Vec::new() };
    let mut broken = Vec::new();
    for job in seen.loads.keys() {
        let wish = master.wishes.of(job);
        let runs = seen.homes(job).next().is_some();
        let by_hand = seen.nodes.values().any(|it| it.by_hand.contains(job));
        let ended = seen.given_up.contains(job);
        match wish.map(|it| it.desired) {
            Some(Desired::Run) if !runs && !ended => {
                broken.push(format!("{job} is wanted and rests"))
            }
            Some(Desired::Rest | Desired::Disabled) if runs && !by_hand => {
                broken.push(format!("{job} runs and is not wanted"));
            }
            Some(Desired::Run | Desired::Rest | Desired::Disabled) | None => {}
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{invariants::example, scenario::name};
    use mainstay_core::fleet::{AskedBy, CopyState, Number, Term};

    #[test]
    fn it_can_fail() {
        let mut seen = example::fleet();
        let number = Number { term: Term { number: 1, master: name("a") }, counter: 1 };
        let a = seen.nodes.get_mut(&name("a")).expect("a node");
        a.wishes.write(number.clone(), &name("web"), AskedBy::User, Desired::Run, None);
        assert_eq!(broken(&seen), Vec::<String>::new());
        let b = seen.nodes.get_mut(&name("b")).expect("a node");
        b.jobs.insert(name("web"), CopyState::Stopped);
        assert_eq!(broken(&seen), ["web is wanted and rests"]);
        let mut seen = example::fleet();
        let a = seen.nodes.get_mut(&name("a")).expect("a node");
        a.wishes.write(number, &name("web"), AskedBy::User, Desired::Rest, None);
        assert_eq!(broken(&seen), ["web runs and is not wanted"]);
    }
}
