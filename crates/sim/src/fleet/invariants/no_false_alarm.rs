//! While nothing divides a fleet nobody is given up who is on: neither a slow node nor one whose
//! agent was replaced.

use crate::fleet::Observation;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let alarms = seen.false_alarms.iter().filter(|_| !seen.divided);
    alarms.map(|it| format!("{} gives up {} at {:?}", it.by, it.node, it.at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{history::FalseAlarm, invariants::example, scenario::name};
    use std::time::Duration;

    #[test]
    fn it_can_fail() {
        assert_eq!(broken(&example::fleet()), Vec::<String>::new());
        let alarm = FalseAlarm { by: name("a"), node: name("b"), at: Duration::from_secs(7) };
        let seen = example::with(|it| it.false_alarms.push(alarm.clone()));
        assert_eq!(broken(&seen), ["a gives up b at 7s"]);
        let seen = example::with(|it| {
            it.divided = true;
            it.false_alarms.push(alarm);
        });
        assert_eq!(broken(&seen), Vec::<String>::new());
    }
}
