//! What a user has said last of a job is what is wanted of it: one that was stopped or disabled rests
//! and has lost its arguments; one that was started is not at rest by a user's will; one that was
//! restarted with arguments has them, or none if somebody has started another copy by hand since: of
//! two copies the arguments of the one that stays count. Where the fleet was divided, or a disk torn,
//! that may be another user's word; of two that come at the same time either may be the last.

use crate::fleet::{Observation, history::AskedRequest};
use mainstay_core::{
    fleet::{FleetRequest, RequestAnswer},
    job::Desired,
    name::Name,
};
use std::time::Duration;

/// So far apart requests do not come at the same time.
const APART: Duration = Duration::from_secs(3);

/// What a request means for a job.
enum Meaning {
    Stopped,
    Started,
    Restarted(Option<Vec<String>>),
    /// It is moved, or settled, or its app's affair.
    Other,
}

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let Some((_, master)) = seen.master() else { return Vec::new() };
    if seen.divided || !seen.torn.is_empty() {
        return Vec::new();
    }
    let mut broken = Vec::new();
    for job in seen.jobs() {
        let Some((last, meaning)) = last_word(seen, job) else { continue };
        let wish = master.wishes.of(job);
        let wanted = wish.is_some_and(|it| it.desired == Desired::Run);
        let args = wish.map(|it| it.args.clone()).unwrap_or_default();
        let holds = match &meaning {
            Meaning::Stopped => !wanted && args.is_empty(),
            Meaning::Started => {
                wanted || wish.is_some_and(|it| !it.is_by_user() || it.desired == Desired::Disabled)
            }
            Meaning::Restarted(Some(given)) => {
                let by_hand = seen.by_hand.iter().any(|(at, it)| it == job && *at >= last.at);
                !wanted || args == *given || (by_hand && args.is_empty())
            }
            Meaning::Restarted(None) | Meaning::Other => true,
        };
        if !holds {
            broken.push(format!("after {:?}: {job} is {wish:?}", last.request));
        }
    }
    broken
}

/// The last request about a job, if none came at the same time and it was begun.
fn last_word<'a>(seen: &'a Observation, job: &Name) -> Option<(&'a AskedRequest, Meaning)> {
    let mut about = seen.asked.iter().filter_map(|it| Some((it, meaning(seen, job, it)?)));
    let mut last = about.next()?;
    let mut alone = true;
    for next in about {
        alone = next.0.at.saturating_sub(last.0.at) >= APART;
        last = next;
    }
    let begun =
        |(id, answer): &(_, RequestAnswer)| *id == last.0.id && *answer == RequestAnswer::Begun;
    (alone && seen.replies.iter().any(begun)).then_some(last)
}

/// `None`: it has nothing to do with the job.
fn meaning(seen: &Observation, job: &Name, asked: &AskedRequest) -> Option<Meaning> {
    let rules = seen.catalogue.jobs.get(job)?;
    let of_app = |app: &Name| *app == rules.app;
    let in_sequence = rules.place.start_sequence > 0;
    match &asked.request {
        FleetRequest::StopJob { job: it } | FleetRequest::DisableJob { job: it } if it == job => {
            Some(Meaning::Stopped)
        }
        FleetRequest::EnableJob { job: it } if it == job => Some(Meaning::Other),
        FleetRequest::StopApp { app } if of_app(app) => Some(Meaning::Stopped),
        FleetRequest::StartJob { job: it, .. } if it == job => Some(Meaning::Started),
        FleetRequest::StartApp { app } | FleetRequest::RestartApp { app, .. }
            if of_app(app) && in_sequence =>
        {
            Some(Meaning::Started)
        }
        FleetRequest::RestartJob { job: it, args } if it == job => {
            Some(Meaning::Restarted(args.clone()))
        }
        FleetRequest::MoveJob { job: it, .. } if it == job => Some(Meaning::Other),
        FleetRequest::MoveApp { app, .. } | FleetRequest::RestartApp { app, .. } if of_app(app) => {
            Some(Meaning::Other)
        }
        FleetRequest::Conciliate { job: it, .. } if it.as_ref().is_none_or(|it| it == job) => {
            Some(Meaning::Other)
        }
        FleetRequest::Drain { on: true, .. } | FleetRequest::HandOver { .. } => {
            Some(Meaning::Other)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{invariants::example, scenario::name};
    use mainstay_core::fleet::{AskedBy, Number, RequestId, RunId};

    /// After these, each at its second, the job is wanted so.
    fn found(requests: Vec<(u64, FleetRequest)>, desired: Desired) -> usize {
        let mut seen = example::with(|it| {
            for (number, (second, request)) in (1..).zip(requests) {
                let id = RequestId { node: name("b"), run: RunId::new("b"), number };
                let at = Duration::from_secs(second);
                it.asked.push(AskedRequest { at, id: id.clone(), request, is_orphan: false });
                it.replies.push((id, RequestAnswer::Begun));
            }
        });
        let number = Number { term: example::term(1, "a"), counter: 1 };
        let a = seen.nodes.get_mut(&name("a")).expect("a node");
        a.wishes.write(number, &name("web"), AskedBy::User, desired, None);
        broken(&seen).len()
    }

    #[test]
    fn it_can_fail() {
        let stop = FleetRequest::StopJob { job: name("web") };
        let start = FleetRequest::StartApp { app: name("shop") };
        let args = Some(vec!["-v".to_owned()]);
        let restart = FleetRequest::RestartJob { job: name("web"), args };
        assert_eq!(found(vec![(1, stop.clone())], Desired::Rest), 0);
        assert_eq!(found(vec![(1, stop.clone())], Desired::Run), 1);
        assert_eq!(found(vec![(1, stop.clone()), (9, start.clone())], Desired::Run), 0);
        assert_eq!(found(vec![(1, stop.clone()), (9, start.clone())], Desired::Rest), 1);
        assert_eq!(found(vec![(8, stop), (9, start)], Desired::Rest), 0, "at the same time");
        assert_eq!(found(vec![(1, restart)], Desired::Run), 1, "without its arguments");
    }
}
