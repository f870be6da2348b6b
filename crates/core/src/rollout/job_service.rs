//! A job of this node as a service: how it is, how it is told, and what is waited for then.
//!
//! ```text
//!  ServiceAction + the job's `reload` ─► JobTelling ─► Request ─► accepted ─► JobGoal ─► outcome
//!                        ▲                  │ a reload runs already
//!                        └── it has ended ──┘
//! ```

use super::{ServiceAction, ServiceFacts, Trouble};
use crate::{
    exit::Exit,
    job::{Health, Job, Phase},
    name::Name,
    node::Request,
    plan::{Reload, SignalTarget},
};

impl ServiceFacts {
    /// Of a job. One that is about to run counts as running; one that waits, rests or is elsewhere
    /// does not.
    #[must_use]
    pub fn of_job(job: &Job) -> ServiceFacts {
        let (running, healthy) = stands(job.phase(), job.health());
        let (died, main_pid) = (has_died(job.phase()), job.pid());
        ServiceFacts { running, healthy, died, main_pid, ..ServiceFacts::default() }
    }

    /// Of a service of which only its command knows anything.
    #[must_use]
    pub fn of_command() -> ServiceFacts {
        ServiceFacts { running: true, healthy: true, ..ServiceFacts::default() }
    }
}

/// Whether a job runs, and whether nothing speaks against it.
fn stands(phase: Phase, health: Health) -> (bool, bool) {
    let well = match health {
        Health::Unknown | Health::Healthy => true,
        Health::Unhealthy => false,
    };
    match phase {
        Phase::Starting | Phase::Running => (true, well),
        Phase::Backoff => (true, false),
        Phase::Stopped | Phase::Stopping | Phase::Exited | Phase::Fatal | Phase::Unknown => {
            (false, false)
        }
    }
}

/// Whether it has ended by itself, and stays so. One that was stopped is what somebody wants.
fn has_died(phase: Phase) -> bool {
    match phase {
        Phase::Exited | Phase::Fatal => true,
        Phase::Stopped
        | Phase::Starting
        | Phase::Running
        | Phase::Backoff
        | Phase::Stopping
        | Phase::Unknown => false,
    }
}

/// How a job is told.
#[derive(Debug, Clone, PartialEq)]
pub struct JobTelling {
    pub request: Request,
    confirmed: Confirmed,
}

/// What says that a job has taken it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Confirmed {
    /// Nothing more than that it was told: nobody answers a signal.
    AtOnce,
    /// The end of the task that the request begins.
    ByTask,
    /// A later process than this one.
    ByProcess { before: u64 },
}

impl JobTelling {
    /// By the signal that the service wants, else by the job's own `reload`, else by a restart. One
    /// that is backed off has no process that could hear of anything, and one that starts may not be
    /// ready to: a signal would kill it. Its next one is begun at once.
    ///
    /// # Errors
    /// What is told to no job.
    pub fn new(
        action: &ServiceAction,
        job: &Name,
        reload: Option<&Reload>,
        (phase, incarnation): (Phase, u64),
    ) -> Result<JobTelling, Trouble> {
        let job = job.clone();
        let restart = |job: Name| {
            let confirmed = Confirmed::ByProcess { before: incarnation };
            (Request::Restart { jobs: vec![job], args: None }, confirmed)
        };
        let is_there = match phase {
            Phase::Starting | Phase::Backoff => false,
            Phase::Running
            | Phase::Stopped
            | Phase::Stopping
            | Phase::Exited
            | Phase::Fatal
            | Phase::Unknown => true,
        };
        let (request, confirmed) = match action {
            ServiceAction::Signal(signal) if is_there => {
                let (signal, to) = (*signal, SignalTarget::Leader);
                (Request::Signal { job, signal, to }, Confirmed::AtOnce)
            }
            ServiceAction::Signal(_) => restart(job),
            ServiceAction::ReloadOrRestart => match reload.filter(|_| is_there) {
                Some(Reload::Signal(_)) => (Request::Reload { job }, Confirmed::AtOnce),
                Some(Reload::Exec(_)) => (Request::Reload { job }, Confirmed::ByTask),
                None => restart(job),
            },
            ServiceAction::BringUp => {
                let confirmed = Confirmed::ByProcess { before: incarnation };
                (Request::Start { jobs: vec![job], args: None, now: true }, confirmed)
            }
            ServiceAction::Exec | ServiceAction::Start(_) | ServiceAction::Stop(_) => {
                return Err(Trouble(format!("job '{job}' cannot be told so")));
            }
        };
        Ok(JobTelling { request, confirmed })
    }

    /// What has to end before the job is told: a reload that was begun earlier may have read the files
    /// of before, and the node runs one at a time. `open`: the reload of the job that runs.
    #[must_use]
    pub fn waits_for(&self, open: Option<u64>) -> Option<JobGoal> {
        match self.confirmed {
            Confirmed::ByTask => open.map(|number| JobGoal::EarlierEnded { number }),
            Confirmed::AtOnce | Confirmed::ByProcess { .. } => None,
        }
    }

    /// What is waited for now that the node has taken the request, and has begun this task; `None`:
    /// nothing, the job is told.
    ///
    /// # Errors
    /// There is nothing that could be waited for.
    pub fn accepted(&self, task: Option<u64>) -> Result<Option<JobGoal>, Trouble> {
        match (self.confirmed, task) {
            (Confirmed::AtOnce, _) => Ok(None),
            (Confirmed::ByProcess { before }, _) => Ok(Some(JobGoal::Restarted { before })),
            (Confirmed::ByTask, Some(number)) => Ok(Some(JobGoal::TaskEnded { number })),
            (Confirmed::ByTask, None) => Err(Trouble("its reload was not begun".to_owned())),
        }
    }
}

/// What a job that was told is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobGoal {
    /// A later process than this one is healthy.
    Restarted { before: u64 },
    /// Its reload command has ended: the task with this number.
    TaskEnded { number: u64 },
    /// The task with this number has ended, whatever came of it: then the job is told.
    EarlierEnded { number: u64 },
}

impl JobGoal {
    /// What has become of it, given how the job is now; `None`: that is not known yet, or the end of
    /// a task says so.
    #[must_use]
    pub fn outcome(&self, name: &Name, job: Option<&Job>) -> Option<Result<(), Trouble>> {
        match (self, job) {
            (JobGoal::TaskEnded { .. } | JobGoal::EarlierEnded { .. }, Some(_) | None) => None,
            (JobGoal::Restarted { .. }, None) => {
                Some(Err(Trouble(format!("job '{name}' is gone"))))
            }
            (JobGoal::Restarted { before }, Some(job)) if job.incarnation() <= *before => None,
            (JobGoal::Restarted { .. }, Some(job)) => {
                restarted(job.phase(), job.health(), job.last_exit())
            }
        }
    }

    /// Its time is over.
    #[must_use]
    pub fn late(&self, job: &Name) -> Trouble {
        Trouble(match self {
            JobGoal::Restarted { .. } => format!("job '{job}' is not healthy in time"),
            JobGoal::TaskEnded { .. } => format!("the reload of job '{job}' takes too long"),
            JobGoal::EarlierEnded { .. } => {
                format!("an earlier reload of job '{job}' takes too long")
            }
        })
    }
}

/// What has become of a new process.
fn restarted(
    phase: Phase,
    health: Health,
    last_exit: Option<&Exit>,
) -> Option<Result<(), Trouble>> {
    match (phase, health) {
        (Phase::Running, Health::Healthy) => Some(Ok(())),
        (Phase::Running, Health::Unknown | Health::Unhealthy)
        | (Phase::Starting | Phase::Stopping | Phase::Unknown, _) => None,
        (Phase::Backoff | Phase::Exited | Phase::Fatal | Phase::Stopped, _) => {
            let how = last_exit.map_or_else(String::new, |exit| format!(": {exit}"));
            Some(Err(Trouble(format!("its new process has ended{how}"))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{rollout::InstanceNumber, signal::Signal};

    const PHASES: [Phase; 8] = [
        Phase::Stopped,
        Phase::Starting,
        Phase::Running,
        Phase::Backoff,
        Phase::Stopping,
        Phase::Exited,
        Phase::Fatal,
        Phase::Unknown,
    ];

    fn web() -> Name {
        Name::new("web").expect("a name")
    }

    #[test]
    fn a_job_that_starts_or_is_backed_off_counts_as_running() {
        let running: Vec<Phase> =
            PHASES.into_iter().filter(|it| stands(*it, Health::Healthy).0).collect();
        assert_eq!(running, [Phase::Starting, Phase::Running, Phase::Backoff]);
        let healthy: Vec<Phase> =
            PHASES.into_iter().filter(|it| stands(*it, Health::Unknown).1).collect();
        assert_eq!(healthy, [Phase::Starting, Phase::Running]);
        assert!(PHASES.iter().all(|it| !stands(*it, Health::Unhealthy).1));
        let died: Vec<Phase> = PHASES.into_iter().filter(|it| has_died(*it)).collect();
        assert_eq!(died, [Phase::Exited, Phase::Fatal], "one that was stopped is left alone");
    }

    #[test]
    fn a_new_process_is_confirmed_when_it_is_healthy_and_not_when_it_has_ended() {
        let code = Exit::Code { code: 3 };
        for phase in PHASES {
            let outcome = restarted(phase, Health::Healthy, Some(&code));
            match phase {
                Phase::Running => assert_eq!(outcome, Some(Ok(()))),
                Phase::Starting | Phase::Stopping | Phase::Unknown => assert_eq!(outcome, None),
                Phase::Backoff | Phase::Exited | Phase::Fatal | Phase::Stopped => {
                    let Some(Err(Trouble(why))) = outcome else { panic!("{phase:?}: {outcome:?}") };
                    assert!(why.contains(&code.to_string()), "{why}");
                }
            }
        }
        assert_eq!(restarted(Phase::Running, Health::Unknown, None), None);
        assert_eq!(restarted(Phase::Running, Health::Unhealthy, None), None);
        let gone = JobGoal::Restarted { before: 1 }.outcome(&web(), None);
        assert!(matches!(gone, Some(Err(_))), "{gone:?}");
        assert_eq!(JobGoal::TaskEnded { number: 1 }.outcome(&web(), None), None);
    }

    #[test]
    fn a_job_is_told_by_the_signal_of_its_service_by_its_own_reload_or_by_a_restart() {
        let hup = Signal::from_number(1).expect("SIGHUP");
        let tell = |action: &ServiceAction, reload: Option<&Reload>| {
            JobTelling::new(action, &web(), reload, (Phase::Running, 7))
        };
        let (by_signal, by_task) = (Reload::Signal(hup), Reload::Exec(vec!["true".to_owned()]));
        let told = tell(&ServiceAction::Signal(hup), Some(&by_task)).expect("told");
        assert!(matches!(told.request, Request::Signal { to: SignalTarget::Leader, .. }));
        assert_eq!(told.accepted(None), Ok(None));

        let told = tell(&ServiceAction::ReloadOrRestart, Some(&by_signal)).expect("told");
        assert!(matches!(told.request, Request::Reload { .. }));
        assert_eq!(told.accepted(None), Ok(None));

        let told = tell(&ServiceAction::ReloadOrRestart, Some(&by_task)).expect("told");
        assert!(matches!(told.request, Request::Reload { .. }));
        assert_eq!(told.accepted(Some(12)), Ok(Some(JobGoal::TaskEnded { number: 12 })));
        assert!(told.accepted(None).is_err(), "nobody would ever tell its end");
        assert_eq!(told.waits_for(None), None);
        let earlier = JobGoal::EarlierEnded { number: 11 };
        assert_eq!(told.waits_for(Some(11)), Some(earlier), "it may have read the files of before");
        assert_eq!(earlier.outcome(&web(), None), None, "the end of its task says so");

        let told = tell(&ServiceAction::ReloadOrRestart, None).expect("told");
        assert!(matches!(told.request, Request::Restart { .. }));
        assert_eq!(told.waits_for(Some(11)), None, "a new process reads them anew");
        assert_eq!(told.accepted(None), Ok(Some(JobGoal::Restarted { before: 7 })));

        let told = tell(&ServiceAction::BringUp, Some(&by_task)).expect("told");
        assert!(matches!(told.request, Request::Start { now: true, .. }));
        assert_eq!(told.accepted(None), Ok(Some(JobGoal::Restarted { before: 7 })));

        // It has no process that could be told, or one that is not ready to hear it.
        for phase in [Phase::Backoff, Phase::Starting] {
            for action in [ServiceAction::Signal(hup), ServiceAction::ReloadOrRestart] {
                let told = JobTelling::new(&action, &web(), Some(&by_signal), (phase, 7));
                let told = told.expect("told");
                assert!(matches!(told.request, Request::Restart { .. }), "{phase:?} {action:?}");
                assert_eq!(told.accepted(None), Ok(Some(JobGoal::Restarted { before: 7 })));
            }
        }

        for action in [
            ServiceAction::Exec,
            ServiceAction::Start(InstanceNumber::One),
            ServiceAction::Stop(InstanceNumber::One),
        ] {
            assert!(tell(&action, None).is_err(), "{action:?}");
        }
    }
}
