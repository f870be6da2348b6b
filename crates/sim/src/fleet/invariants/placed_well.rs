//! A master gives a job only to a node that takes part, knows it, is neither drained nor about to
//! end, does not hand over what it runs, and whose machine can bear it, by all that the master knows then.

use crate::fleet::Observation;
use mainstay_core::fleet::placement::FULL;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let mut broken = Vec::new();
    for it in &seen.placements {
        for (wrong, why) in [
            (!it.takes_part, "does not take part"),
            (!it.is_known, "does not know it"),
            (it.is_drained, "is drained"),
            (it.is_ending, "is about to end"),
            (it.hands_over, "hands over what it runs"),
            (it.load > FULL, "is full"),
        ] {
            if wrong {
                broken.push(format!("{} is given to {}, which {why}", it.job, it.node));
            }
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{history::Placing, invariants::example, scenario::name};

    #[test]
    fn it_can_fail() {
        let well = Placing {
            job: name("web"),
            node: name("b"),
            takes_part: true,
            is_drained: false,
            is_ending: false,
            hands_over: false,
            is_known: true,
            load: 100,
        };
        let broken = |it: Placing| broken(&example::with(|seen| seen.placements.push(it)));
        assert_eq!(broken(well.clone()), Vec::<String>::new());
        for wrong in [
            Placing { takes_part: false, ..well.clone() },
            Placing { is_drained: true, ..well.clone() },
            Placing { is_ending: true, ..well.clone() },
            Placing { hands_over: true, ..well.clone() },
            Placing { is_known: false, ..well.clone() },
            Placing { load: 101, ..well.clone() },
        ] {
            assert_eq!(broken(wrong.clone()).len(), 1, "{wrong:?}");
        }
    }
}
