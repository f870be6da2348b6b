//! Waiting for a goal: what a path names is asked for something, and waited for until it got there.

use crate::{AppState, placed, problem::Problem};
use axum::Json;
use mainstay_config::nearest;
use mainstay_core::{
    name::Name,
    node::{Refusal, Request},
};
use mainstay_wire::api::{
    FleetStatus, Goal, Incarnations, JobAnswer, JobInstances, JobList, JobStatus, PATIENCE,
    Selection,
};
use serde::Deserialize;
use std::{collections::BTreeSet, time::Duration};

/// How long to wait, as the query says it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitQuery {
    wait: Option<String>,
    /// On this node alone, whatever the fleet says.
    #[serde(default)]
    here: bool,
}

impl WaitQuery {
    /// Zero: not at all.
    pub(crate) fn patience(&self) -> Result<Duration, Problem> {
        match &self.wait {
            Some(text) => {
                mainstay_config::duration(text).map_err(|no| Problem::bad_request(no.to_string()))
            }
            None => Ok(PATIENCE),
        }
    }
}

/// What is asked for something: a job, all instances of one, or an app.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    /// Each of them is asked.
    asked: Vec<Name>,
    shape: Shape,
    jobs: Selection,
    /// Those that a start waits for: what does not start with its app is not among them.
    started: Selection,
}

/// What the answer looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    One,
    /// The name in the file, where a job has instances.
    InstancesOf(String),
    /// Several names were given.
    List,
}

impl Subject {
    /// The job of this name, or the instances of the job that is written under it; or several such
    /// names with commas between them. All of them have to be there.
    pub(crate) async fn of_job(state: &AppState, names: &str) -> Result<Subject, Problem> {
        let (mut asked, mut shape) = (Vec::new(), Shape::One);
        for name in names.split(',') {
            let found = state.handle.jobs(Selection::Named(name.to_owned())).await?;
            shape = match found.as_slice() {
                [] => return Err(no_such_job(state, name).await?),
                [job] if job.name.as_str() == name => Shape::One,
                [..] => Shape::InstancesOf(name.to_owned()),
            };
            asked.extend(found.into_iter().map(|job| job.name));
        }
        if names.contains(',') {
            let mut seen = BTreeSet::new();
            asked.retain(|name: &Name| seen.insert(name.clone()));
            shape = Shape::List;
        }
        let jobs = Selection::These(asked.clone());
        Ok(Subject { asked, shape, started: jobs.clone(), jobs })
    }

    /// One request that concerns them all; instances are asked one by one, and one that cannot does
    /// not keep the others from it.
    pub(crate) fn together(&self, request: impl Fn(Vec<Name>) -> Request) -> Vec<Request> {
        match self.shape {
            Shape::InstancesOf(_) => self.each(|job| request(vec![job])),
            Shape::One | Shape::List => vec![request(self.asked.clone())],
        }
    }

    /// A request for each.
    pub(crate) fn each(&self, request: impl Fn(Name) -> Request) -> Vec<Request> {
        self.asked.iter().cloned().map(request).collect()
    }

    pub(crate) fn of_app(app: &Name) -> Subject {
        Subject {
            asked: vec![app.clone()],
            shape: Shape::One,
            jobs: Selection::OfApp(app.clone()),
            started: Selection::StartedWith(app.clone()),
        }
    }

    /// Whom a goal is for.
    fn concerned(&self, goal: Goal) -> Selection {
        match goal {
            Goal::Up { .. } | Goal::Anew | Goal::Started { .. } | Goal::StartedAnew => {
                self.started.clone()
            }
            Goal::Down | Goal::Begun => self.jobs.clone(),
        }
    }

    /// The name of the job that has instances, if it is one.
    pub(crate) fn instances_of(&self) -> Option<&str> {
        match &self.shape {
            Shape::InstancesOf(name) => Some(name),
            Shape::One | Shape::List => None,
        }
    }

    /// One job as it is, instances in a list.
    pub(crate) fn answer(&self, mut jobs: Vec<JobStatus>) -> Result<Json<JobAnswer>, Problem> {
        Ok(Json(match &self.shape {
            Shape::InstancesOf(name) => {
                JobAnswer::Instances(JobInstances { instances_of: name.clone(), jobs })
            }
            Shape::List => JobAnswer::List(JobList { jobs }),
            // It may have left the plan meanwhile.
            Shape::One => JobAnswer::Job(Box::new(jobs.pop().ok_or_else(|| self.not_there())?)),
        }))
    }

    pub(crate) fn not_there(&self) -> Problem {
        Problem::no_such_job(self.asked.first().map_or("", Name::as_str), None)
    }

    pub(crate) async fn jobs(&self, state: &AppState) -> Result<Vec<JobStatus>, Problem> {
        Ok(state.handle.jobs(self.jobs.clone()).await?)
    }

    /// Asks, and is done when that is taken.
    pub(crate) async fn ask(
        &self,
        state: &AppState,
        request: impl Fn(Name) -> Request,
    ) -> Result<Vec<JobStatus>, Problem> {
        let refused = send(state, self.asked.iter().cloned().map(request)).await?.1;
        match refused {
            Some(refusal) => Err(refusal.into()),
            None => self.jobs(state).await,
        }
    }

    /// Lets each reload in its own way, and waits for the commands that this takes.
    pub(crate) async fn reload(
        &self,
        state: &AppState,
        wait: &WaitQuery,
    ) -> Result<Vec<JobStatus>, Problem> {
        let mut waiter = state.handle.wait(wait.patience()?);
        let (mut begun, mut refused) = (Vec::new(), None);
        for job in &self.asked {
            match state.handle.request(Request::Reload { job: job.clone() }).await? {
                Ok(accepted) => begun.extend(accepted.task.map(|task| (job, task))),
                Err(refusal) => refused = refused.or(Some(refusal)),
            }
        }
        for (job, task) in begun {
            waiter.wait_for_task(job, task).await?;
        }
        match refused {
            Some(refusal) => Err(refusal.into()),
            None => self.jobs(state).await,
        }
    }

    /// Asks, and waits until every job has got to its goal, one cannot, or time is over.
    pub(crate) async fn ask_and_wait(
        &self,
        state: &AppState,
        requests: Vec<Request>,
        goal: Goal,
        wait: &WaitQuery,
    ) -> Result<Vec<JobStatus>, Problem> {
        let patience = wait.patience()?;
        let fleet = if wait.here { None } else { state.handle.fleet().await? };
        let requests = match &fleet {
            Some(fleet) => self.ask_fleet(state, fleet, requests, goal, patience).await?,
            None => requests,
        };
        if requests.is_empty() {
            return self.jobs(state).await;
        }
        let elsewhere = |job: &JobStatus| fleet.is_some() && job.placed.is_some();
        let waiter = state.handle.wait(patience);
        let before = incarnations(&self.jobs(state).await?);
        let (accepted, refused) = send(state, requests.into_iter()).await?;
        // Who was refused goes nowhere: only the others are waited for.
        let refused_all = refused.is_some() && accepted.is_empty();
        let taken = |job: &JobStatus| refused.is_none() || accepted.contains_key(&job.name);
        let before: Incarnations = before.into_iter().chain(accepted.clone()).collect();
        if !refused_all {
            let concerned = self.concerned(goal);
            let counts = |job: &JobStatus| taken(job) && !elsewhere(job);
            waiter.wait(concerned, |job| goal.after(&before, job).filter(|_| counts(job))).await?;
        }
        match refused {
            Some(refusal) => Err(refusal.into()),
            None => self.jobs(state).await,
        }
    }
}

impl Subject {
    /// What the fleet places is asked of its master, and waited for. What is this node's own comes
    /// back.
    async fn ask_fleet(
        &self,
        state: &AppState,
        fleet: &FleetStatus,
        requests: Vec<Request>,
        goal: Goal,
        patience: Duration,
    ) -> Result<Vec<Request>, Problem> {
        let (theirs, ours) = placed::divide(fleet, requests);
        if theirs.is_empty() {
            return Ok(ours);
        }
        for request in theirs {
            placed::ask(state, request, patience).await?;
        }
        let concerned = state.handle.jobs(self.concerned(goal)).await?;
        let jobs = concerned.into_iter().filter(|job| job.placed.is_some()).map(|job| job.name);
        placed::wait(state, fleet, &jobs.collect(), goal, patience).await?;
        Ok(ours)
    }
}

/// With the name that may have been meant.
async fn no_such_job(state: &AppState, name: &str) -> Result<Problem, Problem> {
    let status = state.handle.status().await?;
    let names = status.jobs.iter().map(|job| job.name.as_str());
    Ok(Problem::no_such_job(name, nearest(name, names)))
}

fn incarnations(jobs: &[JobStatus]) -> Incarnations {
    jobs.iter().map(|job| (job.name.clone(), job.incarnation)).collect()
}

/// Sends all, also when one is refused: the others are no worse for it. The incarnations before,
/// and the first refusal.
async fn send(
    state: &AppState,
    requests: impl Iterator<Item = Request>,
) -> Result<(Incarnations, Option<Refusal>), Problem> {
    let (mut before, mut refused) = (Incarnations::new(), None);
    for request in requests {
        let job = request.job().cloned();
        match (state.handle.request(request).await?, job) {
            (Ok(accepted), Some(job)) => drop(before.insert(job, accepted.before)),
            (Ok(_), None) => {}
            (Err(refusal), _) => refused = refused.or(Some(refusal)),
        }
    }
    Ok((before, refused))
}
