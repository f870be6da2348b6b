//! Waiting for a goal: what a path names is asked for something, and waited for until it got there.

mod goal;

pub(crate) use goal::Goal;

use crate::{AppState, problem::Problem};
use axum::Json;
use goal::Progress;
use mainstay_agent::{Selection, view::JobStatus};
use mainstay_core::{
    job::Desired,
    name::Name,
    node::{Refusal, Request},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::{Instant, timeout_at};

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
            None => Ok(goal::PATIENCE),
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
        let waiter = Wait::begin(state, patience);
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

pub(crate) type Incarnations = BTreeMap<Name, u64>;

pub(crate) fn incarnations(jobs: &[JobStatus]) -> Incarnations {
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

/// Begun before the request is made, so that nothing that follows from it is missed.
pub(crate) struct Wait<'a> {
    state: &'a AppState,
    patience: Duration,
    deadline: Instant,
    changes: tokio::sync::watch::Receiver<u64>,
}

impl Wait<'_> {
    pub(crate) fn begin(state: &AppState, patience: Duration) -> Wait<'_> {
        let deadline = Instant::now() + patience;
        Wait { state, patience, deadline, changes: state.handle.events().subscribe() }
    }

    /// Returns when all of them have got there.
    pub(crate) async fn wait(
        mut self,
        selection: Selection,
        goal: impl Fn(&JobStatus) -> Option<Goal>,
    ) -> Result<(), Problem> {
        loop {
            self.changes.mark_unchanged();
            let jobs = self.state.handle.jobs(selection.clone()).await?;
            if self.patience.is_zero() {
                return Ok(());
            }
            let mut slow = None;
            for job in &jobs {
                let Some(goal) = goal(job) else { continue };
                match goal.progress(job) {
                    Progress::Reached => {}
                    Progress::Failed => {
                        return Err(Problem::conflict(why_failed(job)).about(job.clone()));
                    }
                    Progress::Waiting => {
                        if let (Goal::Up { .. }, Some(why)) = (goal, hopeless(job)) {
                            return Err(Problem::conflict(why).about(job.clone()));
                        }
                        slow = slow.or(Some(job));
                    }
                }
            }
            let Some(slow) = slow.cloned() else { return Ok(()) };
            if timeout_at(self.deadline, self.changes.changed()).await.is_err() {
                return Err(Problem::time_over(too_slow(&slow, self.patience)).about(slow));
            }
        }
    }
}

fn too_slow(job: &JobStatus, patience: Duration) -> String {
    let name = &job.name;
    let waits = job.waiting.first().map_or_else(String::new, |first| {
        format!(", waiting for {} {} (`mainstay why {name}`)", first.source, first.event)
    });
    let state = word(job);
    format!("{name} is still {state} after {patience:?}{waits}; the request stands and goes on")
}

/// What it waits for can never come.
fn hopeless(job: &JobStatus) -> Option<String> {
    let waiting = job.waiting.iter().find(|one| one.reason.is_some())?;
    let (source, event) = (&waiting.source, &waiting.event);
    let reason = waiting.reason.as_deref().unwrap_or_default();
    let name = &job.name;
    if job.desired == Desired::Disabled {
        return Some(format!("{name} is disabled; `mainstay enable {name}` lets it start"));
    }
    Some(format!(
        "{name} waits for {source} {event}, which can never come: {reason}; \
         `mainstay start {name} --now` does not wait"
    ))
}

fn why_failed(job: &JobStatus) -> String {
    let exit = job.exit.as_ref().map_or_else(String::new, |exit| format!(": {exit}"));
    format!("{} is {}{exit}", job.name, word(job))
}

fn word(job: &JobStatus) -> String {
    format!("{:?}", job.state).to_uppercase()
}
