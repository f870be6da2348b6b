//! Routes that concern a job, or all instances of one.

use crate::{
    AppState,
    extract::{Body, Nothing, PathName, Query},
    problem::Problem,
    routes::v1::node::figures,
    wait::{Subject, WaitQuery},
};
use axum::{Json, extract::State};
use mainstay_core::{name::Name, node::Request, plan::SignalTarget};
use mainstay_wire::api::{
    Goal, JobAnswer, RestartRequest, SignalRequest, StartRequest, Why, WhyAnswer, WhyInstances,
};

type Answer = Result<Json<JobAnswer>, Problem>;

pub(crate) async fn one(
    State(state): State<AppState>,
    PathName(name): PathName,
    Query(Nothing {}): Query<Nothing>,
) -> Answer {
    let subject = Subject::of_job(&state, &name).await?;
    let figures = figures(&state.handle).await?;
    let mut jobs = subject.jobs(&state).await?;
    for job in &mut jobs {
        job.log = figures.as_ref().and_then(|figures| figures.logs.get(&job.name).copied());
    }
    subject.answer(jobs)
}

pub(crate) async fn start(
    State(state): State<AppState>,
    PathName(name): PathName,
    Query(wait): Query<WaitQuery>,
    Body(StartRequest { args, now }): Body<StartRequest>,
) -> Answer {
    fit(args.as_deref())?;
    let subject = Subject::of_job(&state, &name).await?;
    let requests = subject.together(|jobs| Request::Start { jobs, args: args.clone(), now });
    let goal = Goal::Started { beyond: 0 };
    subject.answer(subject.ask_and_wait(&state, requests, goal, &wait).await?)
}

pub(crate) async fn restart(
    State(state): State<AppState>,
    PathName(name): PathName,
    Query(wait): Query<WaitQuery>,
    Body(RestartRequest { args }): Body<RestartRequest>,
) -> Answer {
    fit(args.as_deref())?;
    let subject = Subject::of_job(&state, &name).await?;
    let requests = subject.together(|jobs| Request::Restart { jobs, args: args.clone() });
    let goal = Goal::StartedAnew;
    subject.answer(subject.ask_and_wait(&state, requests, goal, &wait).await?)
}

fn fit(args: Option<&[String]>) -> Result<(), Problem> {
    if args.iter().copied().flatten().any(|word| word.contains('\0')) {
        let detail = "an argument holds a NUL character: no program can be given one";
        return Err(Problem::bad_request(detail));
    }
    Ok(())
}

/// Routes whose body is empty and that wait for a goal.
macro_rules! waiting {
    ($($route:ident $request:ident $goal:expr;)*) => {$(
        pub(crate) async fn $route(
            State(state): State<AppState>,
            PathName(name): PathName,
            Query(wait): Query<WaitQuery>,
            Body(Nothing {}): Body<Nothing>,
        ) -> Answer {
            let subject = Subject::of_job(&state, &name).await?;
            let requests = subject.each(|job: Name| Request::$request { job });
            subject.answer(subject.ask_and_wait(&state, requests, $goal, &wait).await?)
        }
    )*};
}

waiting! {
    stop Stop Goal::Down;
    kill Kill Goal::Down;
    disable Disable Goal::Down;
    enable Enable Goal::Begun;
}

pub(crate) async fn signal(
    State(state): State<AppState>,
    PathName(name): PathName,
    Query(Nothing {}): Query<Nothing>,
    Body(SignalRequest { signal, to }): Body<SignalRequest>,
) -> Answer {
    let to = to.unwrap_or(SignalTarget::Leader);
    let subject = Subject::of_job(&state, &name).await?;
    subject.answer(subject.ask(&state, |job| Request::Signal { job, signal, to }).await?)
}

/// A signal is done when it is sent, a command when it has ended.
pub(crate) async fn reload(
    State(state): State<AppState>,
    PathName(name): PathName,
    Query(wait): Query<WaitQuery>,
    Body(Nothing {}): Body<Nothing>,
) -> Answer {
    let subject = Subject::of_job(&state, &name).await?;
    subject.answer(subject.reload(&state, &wait).await?)
}

pub(crate) async fn why(
    State(state): State<AppState>,
    PathName(name): PathName,
    Query(Nothing {}): Query<Nothing>,
) -> Result<Json<WhyAnswer>, Problem> {
    let subject = Subject::of_job(&state, &name).await?;
    let mut jobs: Vec<Why> = Vec::new();
    for job in subject.jobs(&state).await? {
        let lines = state.handle.why(job.name.as_str()).await?;
        jobs.extend(lines.map(|lines| Why::new(job, lines)));
    }
    Ok(Json(match subject.instances_of() {
        Some(name) => WhyAnswer::Instances(WhyInstances { instances_of: name.to_owned(), jobs }),
        None => WhyAnswer::Job(Box::new(jobs.pop().ok_or_else(|| subject.not_there())?)),
    }))
}
