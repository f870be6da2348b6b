//! Routes that concern an app: its jobs, started and stopped together.

use crate::{
    AppState,
    extract::{Body, Nothing, PathName, Query},
    problem::Problem,
    wait::{Subject, WaitQuery},
};
use axum::{Json, extract::State};
use mainstay_core::{
    name::Name,
    node::{Refusal, Request},
};
use mainstay_wire::api::{AppJobs, Goal};

macro_rules! waiting {
    ($($route:ident $request:ident $goal:expr;)*) => {$(
        pub(crate) async fn $route(
            State(state): State<AppState>,
            PathName(name): PathName,
            Query(wait): Query<WaitQuery>,
            Body(Nothing {}): Body<Nothing>,
        ) -> Result<Json<AppJobs>, Problem> {
            let app = Name::new(&name).map_err(|_| Refusal::NoSuchApp(name))?;
            let subject = Subject::of_app(&app);
            let requests = subject.each(|app: Name| Request::$request { app });
            let jobs = subject.ask_and_wait(&state, requests, $goal, &wait).await?;
            Ok(Json(AppJobs { app, jobs }))
        }
    )*};
}

waiting! {
    start StartApp Goal::Started { beyond: 0 };
    stop StopApp Goal::Down;
    restart RestartApp Goal::StartedAnew;
}
