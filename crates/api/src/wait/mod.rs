//! Waiting for a goal: what a path names is asked for something, and waited for until it got there.

pub(crate) use mainstay_agent::Goal;

use crate::{AppState, problem::Problem};
use axum::Json;
use mainstay_agent::{Incarnations, PATIENCE, Selection, Wait, view::JobStatus};
use mainstay_core::{
    name::Name,
    node::{Refusal, Request},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) type Answer = Result<Json<Value>, Problem>;

/// How long to wait, as the query says it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitQuery {
    wait: Option<String>,
}

impl WaitQuery {
    /// Zero: not at all.
    pub(crate) fn patience(&self) -> Result<Duration, Problem> {
        match &self.wait {
            Some(text) => mainstay_config::duration(text).map_err(Problem::bad_request),
            None => Ok(PATIENCE),
        }
    }
}

/// What is asked for something: a job, all instances of one, or an app.
#[derive(Debug, Clone)]
pub(crate) enum Subject {
    Job(Name),
    Instances(String, Vec<Name>),
    App(Name),
}

impl Subject {
    /// The job of this name, or the instances of the job that is written under it.
    pub(crate) async fn of_job(state: &AppState, name: &str) -> Result<Subject, Problem> {
        let found = state.handle.jobs(Selection::Named(name.to_owned())).await?;
        match found.as_slice() {
            [] => Err(Problem::no_such_job(name)),
            [job] if job.name.as_str() == name => Ok(Subject::Job(job.name.clone())),
            jobs => {
                let names = jobs.iter().map(|job| job.name.clone()).collect();
                Ok(Subject::Instances(name.to_owned(), names))
            }
        }
    }

    pub(crate) fn of_app(name: &str) -> Result<Subject, Problem> {
        let name = Name::new(name).map_err(|_| Refusal::NoSuchApp(name.to_owned()))?;
        Ok(Subject::App(name))
    }

    /// The same request for each of the jobs.
    fn requests(&self, request: impl Fn(Name) -> Request) -> Vec<Request> {
        match self {
            Subject::Job(name) | Subject::App(name) => vec![request(name.clone())],
            Subject::Instances(_, names) => names.iter().cloned().map(request).collect(),
        }
    }

    fn selection(&self) -> Selection {
        match self {
            Subject::Job(name) => Selection::These(vec![name.clone()]),
            Subject::Instances(_, names) => Selection::These(names.clone()),
            Subject::App(name) => Selection::OfApp(name.clone()),
        }
    }

    /// Whom a goal is for: what does not start with its app is not waited for.
    fn concerned(&self, goal: Goal) -> Selection {
        match (self, goal) {
            (Subject::App(name), Goal::Up { .. } | Goal::Anew) => {
                Selection::StartedWith(name.clone())
            }
            (Subject::Job(_) | Subject::Instances(..) | Subject::App(_), _) => self.selection(),
        }
    }

    pub(crate) async fn jobs(&self, state: &AppState) -> Result<Vec<JobStatus>, Problem> {
        Ok(state.handle.jobs(self.selection()).await?)
    }

    /// One job as it is, several in a list.
    pub(crate) fn answer(&self, mut jobs: Vec<JobStatus>) -> Answer {
        match self {
            // It may have left the plan meanwhile.
            Subject::Job(name) => match jobs.pop() {
                Some(job) => Ok(Json(json!(job))),
                None => Err(Problem::no_such_job(name.as_str())),
            },
            Subject::Instances(name, _) => Ok(Json(json!({ "instances_of": name, "jobs": jobs }))),
            Subject::App(name) => Ok(Json(json!({ "app": name, "jobs": jobs }))),
        }
    }

    /// Asks, and is done when that is taken.
    pub(crate) async fn ask(&self, state: &AppState, request: impl Fn(Name) -> Request) -> Answer {
        let refused = send(state, self.requests(request)).await?.1;
        match refused {
            Some(refusal) => Err(refusal.into()),
            None => self.answer(self.jobs(state).await?),
        }
    }

    /// Asks, and waits until every job has got to its goal, one cannot, or time is over.
    pub(crate) async fn ask_and_wait(
        &self,
        state: &AppState,
        request: impl Fn(Name) -> Request,
        goal: Goal,
        wait: &WaitQuery,
    ) -> Answer {
        let patience = wait.patience()?;
        let waiter = Wait::begin(&state.handle, patience);
        let before = incarnations(&self.jobs(state).await?);
        let (accepted, refused) = send(state, self.requests(request)).await?;
        // Who was refused goes nowhere: only the others are waited for.
        let refused_all = refused.is_some() && accepted.is_empty();
        let taken = |job: &JobStatus| refused.is_none() || accepted.contains_key(&job.name);
        let before: Incarnations = before.into_iter().chain(accepted.clone()).collect();
        if !refused_all {
            let concerned = self.concerned(goal);
            waiter.wait(concerned, |job| goal.after(&before, job).filter(|_| taken(job))).await?;
        }
        match refused {
            Some(refusal) => Err(refusal.into()),
            None => self.answer(self.jobs(state).await?),
        }
    }
}

fn incarnations(jobs: &[JobStatus]) -> Incarnations {
    jobs.iter().map(|job| (job.name.clone(), job.incarnation)).collect()
}

/// Sends all, also when one is refused: the others are no worse for it. The incarnations before,
/// and the first refusal.
async fn send(
    state: &AppState,
    requests: Vec<Request>,
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
