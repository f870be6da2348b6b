//! Requests for what the fleet places: asked of its master, and waited for wherever it comes to.

use crate::{RouterState, problem::Problem, wait::no_such_job};
use mainstay_core::{
    fleet::{FleetRequest, RequestAnswer},
    job::Desired,
    name::Name,
    node::{Refusal, Request},
};
use mainstay_wire::api::{FleetStatus, Goal, PlacedStatus};
use std::{collections::BTreeSet, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout, timeout_at},
};

/// However short a wait is, the master gets so long to answer.
const ANSWER: Duration = Duration::from_secs(2);
/// Looking at the fleet takes so long that it is not done for every change.
const NOTICEABLE: Duration = Duration::from_micros(500);
/// A reason that stood before the request stands still after so long: it is why nothing comes of it.
const STANDS: Duration = Duration::from_secs(1);

/// Requests for what the fleet places; the others are given back.
pub(crate) fn divide(
    fleet: &FleetStatus,
    requests: Vec<Request>,
) -> (Vec<FleetRequest>, Vec<Request>) {
    let is_placed = |job: &Name| fleet.job(job.as_str()).is_some();
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for request in requests {
        match request {
            Request::StartApp { app } => theirs.push(FleetRequest::StartApp { app }),
            Request::StopApp { app } => theirs.push(FleetRequest::StopApp { app }),
            Request::RestartApp { app, wave } => {
                theirs.push(FleetRequest::RestartApp { app, wave });
            }
            Request::Stop { job } if is_placed(&job) => theirs.push(FleetRequest::StopJob { job }),
            Request::StopInOrder { jobs } => {
                let (placed, local): (Vec<Name>, Vec<Name>) = jobs.into_iter().partition(is_placed);
                theirs.extend(placed.into_iter().map(|job| FleetRequest::StopJob { job }));
                if !local.is_empty() {
                    ours.push(Request::StopInOrder { jobs: local });
                }
            }
            Request::Disable { job } if is_placed(&job) => {
                theirs.push(FleetRequest::DisableJob { job });
            }
            Request::Enable { job } if is_placed(&job) => {
                theirs.push(FleetRequest::EnableJob { job });
            }
            Request::Start { jobs, args, now } => {
                let (placed, local): (Vec<Name>, Vec<Name>) = jobs.into_iter().partition(is_placed);
                let start = |job| FleetRequest::StartJob { job, args: args.clone() };
                theirs.extend(placed.into_iter().map(start));
                if !local.is_empty() {
                    ours.push(Request::Start { jobs: local, args, now });
                }
            }
            Request::Restart { jobs, args } => {
                let (placed, local): (Vec<Name>, Vec<Name>) = jobs.into_iter().partition(is_placed);
                let start = |job| FleetRequest::RestartJob { job, args: args.clone() };
                theirs.extend(placed.into_iter().map(start));
                if !local.is_empty() {
                    ours.push(Request::Restart { jobs: local, args });
                }
            }
            other => ours.push(other),
        }
    }
    (theirs, ours)
}

/// Asks the master, whoever that is.
pub(crate) async fn ask(
    state: &RouterState,
    request: FleetRequest,
    patience: Duration,
) -> Result<(), Problem> {
    let patience = patience.max(ANSWER);
    let names = (app_of(&request), job_of(&request));
    let Ok(answer) = timeout(patience, state.handle.ask_fleet(request)).await else {
        return Err(Problem::overdue(format!(
            "no master of the fleet has answered within {patience:?}: it is done once there is one"
        )));
    };
    match answer? {
        RequestAnswer::Begun => Ok(()),
        RequestAnswer::NoSuchJob => Err(no_such_job(state, &names.1).await?),
        refused => Err(refusal(refused, names)),
    }
}

/// Why the master does not do it, for an app or a job of this name.
pub(crate) fn refusal(answer: RequestAnswer, (app, job): (String, String)) -> Problem {
    match answer {
        RequestAnswer::NoSuchApp => Refusal::NoSuchApp(app).into(),
        RequestAnswer::NoSuchJob => Refusal::NoSuchJob(job).into(),
        RequestAnswer::Begun | RequestAnswer::NotNow => Problem::conflict(
            "the fleet starts nothing now: it has no master, conciliates, or ends",
        ),
        RequestAnswer::NoSuchNode => {
            Problem::not_found("no node of this name takes part in the fleet")
        }
        RequestAnswer::NotRunning => Problem::conflict("it does not run"),
        RequestAnswer::Disabled => {
            Problem::conflict(format!("job '{job}' is disabled in the fleet: enable it first"))
        }
        RequestAnswer::NotPlaced(why) => Problem::conflict(format!("nothing is moved: {why}")),
        RequestAnswer::Stays { jobs } => {
            let jobs: Vec<&str> = jobs.iter().map(Name::as_str).collect();
            let jobs = jobs.join(", ");
            Problem::conflict(format!("these have no other home, and stay: {jobs}"))
        }
        RequestAnswer::Unknown(answer) => Problem::conflict(format!(
            "the master is of a later version, and answers what this one does not know: {answer}"
        )),
    }
}

fn app_of(request: &FleetRequest) -> String {
    match request {
        FleetRequest::StartApp { app }
        | FleetRequest::StopApp { app }
        | FleetRequest::MoveApp { app, .. }
        | FleetRequest::RestartApp { app, .. } => app.to_string(),
        FleetRequest::StartJob { .. }
        | FleetRequest::StopJob { .. }
        | FleetRequest::RestartJob { .. }
        | FleetRequest::DisableJob { .. }
        | FleetRequest::EnableJob { .. }
        | FleetRequest::MoveJob { .. }
        | FleetRequest::Drain { .. }
        | FleetRequest::HandOver { .. }
        | FleetRequest::Readmit { .. }
        | FleetRequest::Conciliate { .. }
        | FleetRequest::EndFleet { .. }
        | FleetRequest::Unknown(_) => String::new(),
    }
}

fn job_of(request: &FleetRequest) -> String {
    match request {
        FleetRequest::StartJob { job, .. }
        | FleetRequest::StopJob { job }
        | FleetRequest::MoveJob { job, .. }
        | FleetRequest::DisableJob { job }
        | FleetRequest::EnableJob { job }
        | FleetRequest::RestartJob { job, .. } => job.to_string(),
        FleetRequest::StartApp { .. }
        | FleetRequest::StopApp { .. }
        | FleetRequest::RestartApp { .. }
        | FleetRequest::MoveApp { .. }
        | FleetRequest::Drain { .. }
        | FleetRequest::HandOver { .. }
        | FleetRequest::Readmit { .. }
        | FleetRequest::Conciliate { .. }
        | FleetRequest::EndFleet { .. }
        | FleetRequest::Unknown(_) => String::new(),
    }
}

/// Waits until these jobs are where the goal wants them, one cannot be, or time is over.
pub(crate) async fn wait(
    state: &RouterState,
    before: &FleetStatus,
    jobs: &BTreeSet<Name>,
    goal: Goal,
    patience: Duration,
) -> Result<(), Problem> {
    let begun = Instant::now();
    let mut sight = Sight::new(state, begun + patience);
    // A reason that stands is one by then.
    let stands = begun + STANDS;
    loop {
        let Some(fleet) = sight.look().await? else { return Ok(()) };
        let mut open = None;
        for job in jobs {
            let Some(now) = fleet.job(job.as_str()) else { continue };
            match progress(before.job(job.as_str()), now, goal, begun.elapsed()) {
                Progress::Done => {}
                Progress::Failed(why) => return Err(Problem::conflict(format!("{job} {why}"))),
                Progress::Open => open = Some(now.clone()),
            }
        }
        let Some(job) = open else { return Ok(()) };
        if begun.elapsed() >= patience {
            if patience.is_zero() {
                return Ok(());
            }
            let state = job.home().map_or("STOPPED", |copy| copy.state.as_str());
            return Err(Problem::overdue(format!("{} is {state} after {patience:?}", job.job)));
        }
        sight.changed(Some(stands).filter(|at| *at > Instant::now())).await;
    }
}

/// The fleet, looked at whenever something has changed in it.
pub(crate) struct Sight<'a> {
    state: &'a RouterState,
    changes: Option<watch::Receiver<u64>>,
    until: Instant,
    took: Duration,
}

impl Sight<'_> {
    pub(crate) fn new(state: &RouterState, until: Instant) -> Sight<'_> {
        Sight { state, changes: state.handle.fleet_changes(), until, took: Duration::ZERO }
    }

    async fn look(&mut self) -> Result<Option<FleetStatus>, Problem> {
        let state = self.state;
        self.look_at(async { Ok(state.handle.fleet().await?) }).await
    }

    /// At a part of it.
    pub(crate) async fn look_at<T>(
        &mut self,
        part: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        self.changes.iter_mut().for_each(watch::Receiver::mark_unchanged);
        let begun = Instant::now();
        let seen = part.await;
        self.took = begun.elapsed();
        seen
    }

    /// Returns when there may be something to see: a change, this moment, or the end of the wait.
    pub(crate) async fn changed(&mut self, at: Option<Instant>) {
        let at = at.map_or(self.until, |at| at.min(self.until));
        let Some(changes) = &mut self.changes else { return sleep_until(at).await };
        let heard = timeout_at(at, changes.changed()).await.is_ok();
        if heard && self.took > NOTICEABLE {
            // A thousand changes one after the other are not each looked at.
            sleep_until(at.min(Instant::now() + self.took * 8)).await;
        }
    }
}

/// Waits until these run on a node.
pub(crate) async fn wait_for_home(
    state: &RouterState,
    jobs: &BTreeSet<Name>,
    to: &Name,
    patience: Duration,
) -> Result<(), Problem> {
    let begun = Instant::now();
    let mut sight = Sight::new(state, begun + patience);
    while let Some(fleet) = sight.look().await? {
        let is_there = |job: &&Name| {
            let home = fleet.job(job.as_str()).and_then(PlacedStatus::home);
            home.is_some_and(|copy| copy.node == *to && copy.state == "RUNNING")
        };
        let Some(job) = jobs.iter().find(|job| !is_there(job)) else { return Ok(()) };
        if begun.elapsed() >= patience {
            if patience.is_zero() {
                return Ok(());
            }
            return Err(Problem::overdue(format!("{job} does not run on {to} after {patience:?}")));
        }
        sight.changed(None).await;
    }
    Ok(())
}

/// What this node runs of the fleet goes elsewhere, and then the run ends. If something has no other
/// home, or is not gone in time, nothing ends.
pub(crate) async fn hand_over_and_end(
    state: &RouterState,
    patience: Duration,
) -> Result<(), Problem> {
    let fleet = state.handle.fleet().await?.ok_or_else(Problem::no_fleet)?;
    let begun = Instant::now();
    let hand_over = HandOver::begin(state).await?;
    ask(state, FleetRequest::HandOver { node: fleet.node.clone() }, patience).await?;
    wait_until_empty(state, &fleet.node, begun, patience).await?;
    state.handle.request(Request::Shutdown).await??;
    hand_over.done();
    Ok(())
}

/// The node is no candidate for anything; it is one again unless it ends, also when nobody waits
/// for that any more.
struct HandOver<'a> {
    state: &'a RouterState,
    ends: bool,
}

impl HandOver<'_> {
    async fn begin(state: &RouterState) -> Result<HandOver<'_>, Problem> {
        state.handle.hand_over(true).await?;
        Ok(HandOver { state, ends: false })
    }

    fn done(mut self) {
        self.ends = true;
    }
}

impl Drop for HandOver<'_> {
    fn drop(&mut self) {
        if !self.ends {
            let handle = self.state.handle.clone();
            tokio::spawn(async move {
                // Nobody is left only when the agent has ended.
                let _ = handle.hand_over(false).await;
            });
        }
    }
}

/// Waits until nothing of the fleet runs on a node.
async fn wait_until_empty(
    state: &RouterState,
    node: &Name,
    begun: Instant,
    patience: Duration,
) -> Result<(), Problem> {
    let mut sight = Sight::new(state, begun + patience);
    while let Some(fleet) = sight.look().await? {
        let here = |job: &&PlacedStatus| job.home().is_some_and(|copy| copy.node == *node);
        let Some(job) = fleet.jobs.iter().find(here) else { return Ok(()) };
        if begun.elapsed() >= patience {
            let (job, state) = (&job.job, job.home().map_or("STOPPED", |copy| copy.state.as_str()));
            return Err(Problem::overdue(format!(
                "{job} is still {state} on {node} after {patience:?}: nothing ends"
            )));
        }
        sight.changed(None).await;
    }
    Ok(())
}

enum Progress {
    Done,
    Open,
    Failed(String),
}

fn progress(
    before: Option<&PlacedStatus>,
    now: &PlacedStatus,
    goal: Goal,
    since: Duration,
) -> Progress {
    let home = now.home();
    // What is disabled does not start with its app.
    if goal == Goal::Begun || (now.desired == Desired::Disabled && goal != Goal::Down) {
        return Progress::Done;
    }
    if goal == Goal::Down {
        return if home.is_none() { Progress::Done } else { Progress::Open };
    }
    let run = |job: &PlacedStatus| job.copies.first().map(|it| (it.node.clone(), it.incarnation));
    let anew = before.is_none_or(|before| run(before) != run(now));
    let wants_anew = matches!(goal, Goal::Anew | Goal::StartedAnew);
    match (home, now.copies.first(), &now.reason) {
        (Some(copy), ..) if copy.state == "RUNNING" && (anew || !wants_anew) => Progress::Done,
        (None, _, Some(reason))
            if before.is_none_or(|it| it.reason.as_ref() != Some(reason)) || since >= STANDS =>
        {
            Progress::Failed(format!("is {reason}"))
        }
        (None, Some(copy), None) if anew && copy.failed => {
            Progress::Failed(format!("has failed on {}: it is {}", copy.node, copy.state))
        }
        (None, Some(copy), None) if anew && copy.state == "EXITED" => Progress::Done,
        (_, _, _) => Progress::Open,
    }
}
