//! What happens to a fleet: a list that a person can read, and that is made from a seed.

use super::net::Dice;
use mainstay_core::{
    fleet::{Conciliation, FleetRequest},
    name::Name,
};
use std::{fmt, time::Duration};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The machine loses its power: jobs and agent are gone.
    Crash(Name),
    /// It comes back with what is on its disk.
    Boot(Name),
    /// The two groups no longer hear each other; one-way: the second does not hear the first.
    Cut {
        one: Vec<Name>,
        other: Vec<Name>,
        one_way: bool,
    },
    Heal,
    /// Packets are lost and come twice (of a thousand), and late (ms).
    Weather {
        loss: u64,
        repeats: u64,
        delay: u64,
    },
    /// A process ends by itself, wherever it runs.
    JobCrash(Name),
    /// Somebody starts it there, whatever the fleet says.
    StartHere {
        job: Name,
        node: Name,
    },
    Ask {
        node: Name,
        request: FleetRequest,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub at: Duration,
    pub fault: Fault,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub seed: u64,
    pub steps: Vec<Step>,
}

impl Script {
    /// Two minutes of trouble; then all is well for as long as it takes.
    #[must_use]
    pub fn random(seed: u64, nodes: &[Name], apps: &[Name], jobs: &[Name]) -> Script {
        let mut dice = Dice::new(seed);
        let mut steps = Vec::new();
        let count = 2 + dice.below(10);
        for _ in 0..count {
            let at = Duration::from_millis(3_000 + dice.below(90_000));
            fault(&mut dice, at, nodes, apps, jobs, &mut steps);
        }
        let end = Duration::from_secs(100);
        steps.push(Step { at: end, fault: Fault::Weather { loss: 0, repeats: 0, delay: 5 } });
        steps.push(Step { at: end, fault: Fault::Heal });
        for node in nodes {
            steps.push(Step { at: end, fault: Fault::Boot(node.clone()) });
        }
        steps.sort_by_key(|step| step.at);
        Script { seed, steps }
    }

    #[must_use]
    pub fn has_cut(&self) -> bool {
        self.steps
            .iter()
            .any(|step| matches!(step.fault, Fault::Cut { .. } | Fault::Weather { loss: 1.., .. }))
    }
}

fn pick<'a>(dice: &mut Dice, of: &'a [Name]) -> &'a Name {
    let at = usize::try_from(dice.below(of.len() as u64)).unwrap_or(0);
    &of[at]
}

fn fault(
    dice: &mut Dice,
    at: Duration,
    nodes: &[Name],
    apps: &[Name],
    jobs: &[Name],
    steps: &mut Vec<Step>,
) {
    let later = at + Duration::from_millis(100 + dice.below(15_000));
    let mut push = |at, fault| steps.push(Step { at, fault });
    match dice.below(10) {
        0..=2 => {
            let node = pick(dice, nodes).clone();
            push(at, Fault::Crash(node.clone()));
            push(later, Fault::Boot(node));
        }
        3..=4 => {
            let (mut one, mut other) = (Vec::new(), Vec::new());
            for node in nodes {
                if dice.chance(500) { one.push(node.clone()) } else { other.push(node.clone()) }
            }
            push(at, Fault::Cut { one, other, one_way: dice.chance(250) });
            push(later, Fault::Heal);
        }
        5 => {
            let (loss, repeats, delay) = (dice.below(100), dice.below(200), 5 + dice.below(200));
            push(at, Fault::Weather { loss, repeats, delay });
            push(later, Fault::Weather { loss: 0, repeats: 0, delay: 5 });
        }
        6 => push(at, Fault::JobCrash(pick(dice, jobs).clone())),
        7 => {
            let (job, node) = (pick(dice, jobs).clone(), pick(dice, nodes).clone());
            push(at, Fault::StartHere { job, node });
        }
        _ => {
            let node = pick(dice, nodes).clone();
            let (app, job) = (pick(dice, apps).clone(), pick(dice, jobs).clone());
            let request = match dice.below(6) {
                0 => FleetRequest::StopApp { app },
                1 => FleetRequest::RestartApp { app, wave: None },
                2 => {
                    FleetRequest::StartJob { job, args: Some(vec![format!("-{}", dice.below(9))]) }
                }
                3 => FleetRequest::StopJob { job },
                4 => FleetRequest::Conciliate { job: None, rule: Conciliation::Infanticide },
                _ => FleetRequest::StartApp { app },
            };
            push(at, Fault::Ask { node, request });
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        for Step { at, fault } in &self.steps {
            writeln!(f, "{:>8.3}s  {fault}", at.as_secs_f64())?;
        }
        Ok(())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &[Name]| names.iter().map(Name::as_str).collect::<Vec<_>>().join(" ");
        match self {
            Fault::Crash(node) => write!(f, "{node} loses its power"),
            Fault::Boot(node) => write!(f, "{node} is switched on"),
            Fault::Cut { one, other, one_way: false } => {
                write!(f, "cut between [{}] and [{}]", list(one), list(other))
            }
            Fault::Cut { one, other, one_way: true } => {
                write!(f, "[{}] no longer hear [{}]", list(other), list(one))
            }
            Fault::Heal => f.write_str("all cuts heal"),
            Fault::Weather { loss, repeats, delay } => {
                write!(
                    f,
                    "{loss} of 1000 packets are lost, {repeats} repeated, up to {delay} ms late"
                )
            }
            Fault::JobCrash(job) => write!(f, "{job} crashes"),
            Fault::StartHere { job, node } => write!(f, "{job} is started on {node} by hand"),
            Fault::Ask { node, request } => write!(f, "{node} is asked: {request:?}"),
        }
    }
}
