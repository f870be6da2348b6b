//! Routes that concern a job, or all instances of one.

use crate::{
    RouterState,
    extract::{Body, HereQuery, Nothing, PathName, Query},
    passing::{Hop, Question},
    placed,
    problem::Problem,
    routes::v1::node::figures,
    wait::{Scope, Subject, WaitQuery},
};
use axum::{Json, extract::State};
use mainstay_core::{fleet::FleetRequest, name::Name, node::Request, plan::SignalTarget};
use mainstay_wire::api::{
    Goal, JobAnswer, JobStatus, RestartRequest, SignalRequest, StartRequest, Why, WhyAnswer,
    WhyInstances,
};
use serde_json::json;

type Answer = Result<Json<JobAnswer>, Problem>;

pub(crate) async fn one(
    State(state): State<RouterState>,
    hop: Hop,
    PathName(name): PathName,
    Query(HereQuery { here }): Query<HereQuery>,
) -> Answer {
    let subject = Subject::of_job(&state, &name, Scope::Home.or_here(here)).await?;
    let question = |path| Question::get(format!("{path}?here=true"));
    let elsewhere = subject.jobs_elsewhere(&state, hop, question).await?;
    let here = async {
        let figures = figures(&state.handle).await?;
        let mut jobs = subject.jobs(&state).await?;
        for job in &mut jobs {
            job.log = figures.as_ref().and_then(|figures| figures.logs.get(&job.name).copied());
        }
        Ok(jobs)
    };
    together(&subject, elsewhere, here).await
}

/// The answer about those of other nodes and, where there are some, about those of this one.
async fn together(
    subject: &Subject,
    elsewhere: Vec<JobStatus>,
    here: impl Future<Output = Result<Vec<JobStatus>, Problem>>,
) -> Answer {
    let mut jobs = if subject.is_here() { here.await? } else { Vec::new() };
    jobs.extend(elsewhere);
    subject.answer(jobs)
}

pub(crate) async fn start(
    State(state): State<RouterState>,
    hop: Hop,
    PathName(name): PathName,
    Query(wait): Query<WaitQuery>,
    Body(request): Body<StartRequest>,
) -> Answer {
    fit(request.args.as_deref())?;
    let subject = Subject::of_job(&state, &name, Scope::Fleet.or_here(wait.here)).await?;
    let question =
        |path| Question::post(format!("{path}/start?{}", wait.passed_on()), &json!(request));
    let elsewhere = subject.jobs_elsewhere(&state, hop, question).await?;
    let StartRequest { args, now } = &request;
    let requests = subject.together(|jobs| Request::Start { jobs, args: args.clone(), now: *now });
    let goal = Goal::Started { beyond: 0 };
    together(&subject, elsewhere, subject.ask_and_wait(&state, requests, goal, &wait)).await
}

pub(crate) async fn restart(
    State(state): State<RouterState>,
    hop: Hop,
    PathName(name): PathName,
    Query(wait): Query<WaitQuery>,
    Body(request): Body<RestartRequest>,
) -> Answer {
    fit(request.args.as_deref())?;
    let subject = Subject::of_job(&state, &name, Scope::Fleet.or_here(wait.here)).await?;
    let question =
        |path| Question::post(format!("{path}/restart?{}", wait.passed_on()), &json!(request));
    let elsewhere = subject.jobs_elsewhere(&state, hop, question).await?;
    let requests = subject.together(|jobs| Request::Restart { jobs, args: request.args.clone() });
    let goal = Goal::StartedAnew;
    together(&subject, elsewhere, subject.ask_and_wait(&state, requests, goal, &wait)).await
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
    ($($route:ident $goal:expr, $requests:expr;)*) => {$(
        pub(crate) async fn $route(
            State(state): State<RouterState>,
            hop: Hop,
            PathName(name): PathName,
            Query(wait): Query<WaitQuery>,
            Body(Nothing {}): Body<Nothing>,
        ) -> Answer {
            let subject = Subject::of_job(&state, &name, Scope::Fleet.or_here(wait.here)).await?;
            let question = |path| {
                let (verb, query) = (stringify!($route), wait.passed_on());
                Question::post(format!("{path}/{verb}?{query}"), &json!({}))
            };
            let elsewhere = subject.jobs_elsewhere(&state, hop, question).await?;
            let requests = $requests(&subject);
            let here = subject.ask_and_wait(&state, requests, $goal, &wait);
            together(&subject, elsewhere, here).await
        }
    )*};
}

waiting! {
    stop Goal::Down, Subject::stops;
    disable Goal::Down, |it: &Subject| it.each(|job| Request::Disable { job });
    enable Goal::Begun, |it: &Subject| it.each(|job| Request::Enable { job });
}

/// What the fleet places is stopped by its master as well, so that it rests.
pub(crate) async fn kill(
    State(state): State<RouterState>,
    hop: Hop,
    PathName(name): PathName,
    Query(mut wait): Query<WaitQuery>,
    Body(Nothing {}): Body<Nothing>,
) -> Answer {
    let subject = Subject::of_job(&state, &name, Scope::Home.or_here(wait.here)).await?;
    let in_fleet = !wait.here && state.handle.node_name().is_some();
    let placed = if in_fleet { subject.placed(&state).await? } else { Vec::new() };
    for job in placed {
        placed::ask(&state, FleetRequest::StopJob { job }, wait.patience()?).await?;
    }
    let question =
        |path| Question::post(format!("{path}/kill?here=true&{}", wait.passed_on()), &json!({}));
    let elsewhere = subject.jobs_elsewhere(&state, hop, question).await?;
    wait.here = true;
    let requests = subject.each(|job: Name| Request::Kill { job });
    together(&subject, elsewhere, subject.ask_and_wait(&state, requests, Goal::Down, &wait)).await
}

pub(crate) async fn signal(
    State(state): State<RouterState>,
    hop: Hop,
    PathName(name): PathName,
    Query(HereQuery { here }): Query<HereQuery>,
    Body(request): Body<SignalRequest>,
) -> Answer {
    let subject = Subject::of_job(&state, &name, Scope::Home.or_here(here)).await?;
    let question = |path| Question::post(format!("{path}/signal?here=true"), &json!(request));
    let elsewhere = subject.jobs_elsewhere(&state, hop, question).await?;
    let (signal, to) = (request.signal, request.to.unwrap_or(SignalTarget::Leader));
    let here = subject.ask(&state, |job| Request::Signal { job, signal, to });
    together(&subject, elsewhere, here).await
}

/// A signal is done when it is sent, a command when it has ended.
pub(crate) async fn reload(
    State(state): State<RouterState>,
    hop: Hop,
    PathName(name): PathName,
    Query(wait): Query<WaitQuery>,
    Body(Nothing {}): Body<Nothing>,
) -> Answer {
    let subject = Subject::of_job(&state, &name, Scope::Home.or_here(wait.here)).await?;
    let question =
        |path| Question::post(format!("{path}/reload?here=true&{}", wait.passed_on()), &json!({}));
    let elsewhere = subject.jobs_elsewhere(&state, hop, question).await?;
    together(&subject, elsewhere, subject.reload(&state, &wait)).await
}

/// Of a job that runs elsewhere: where, and what that node has to say.
pub(crate) async fn why(
    State(state): State<RouterState>,
    hop: Hop,
    PathName(name): PathName,
    Query(HereQuery { here }): Query<HereQuery>,
) -> Result<Json<WhyAnswer>, Problem> {
    let subject = Subject::of_job(&state, &name, Scope::Home.or_here(here)).await?;
    let mut jobs: Vec<Why> = Vec::new();
    for job in subject.jobs(&state).await? {
        let lines = state.handle.why(job.name.as_str()).await?;
        jobs.extend(lines.map(|lines| Why::new(job, lines)));
    }
    let question = |path| Question::get(format!("{path}/why?here=true"));
    for answer in subject.ask_elsewhere(&state, hop, question).await? {
        let node = answer.node().clone();
        for mut job in answer.read::<WhyAnswer>().await?.into_jobs() {
            job.lines.insert(0, format!("the fleet has it on {node}"));
            jobs.push(job);
        }
    }
    Ok(Json(match subject.instances_of() {
        Some(name) => WhyAnswer::Instances(WhyInstances { instances_of: name.to_owned(), jobs }),
        None => WhyAnswer::Job(Box::new(jobs.pop().ok_or_else(|| subject.not_there())?)),
    }))
}
