//! Routes that concern an app: its jobs, started and stopped together.

use crate::{
    AppState,
    extract::{Body, Nothing, PathName, Query},
    wait::{Answer, Goal, Subject, WaitQuery},
};
use axum::extract::State;
use mainstay_core::{name::Name, node::Request};

macro_rules! waiting {
    ($($route:ident $request:ident $goal:expr;)*) => {$(
        pub(crate) async fn $route(
            State(state): State<AppState>,
            PathName(name): PathName,
            Query(wait): Query<WaitQuery>,
            Body(Nothing {}): Body<Nothing>,
        ) -> Answer {
            let request = |app: Name| Request::$request { app };
            Subject::of_app(&name)?.ask_and_wait(&state, request, $goal, &wait).await
        }
    )*};
}

waiting! {
    start StartApp Goal::Up { beyond: 0 };
    stop StopApp Goal::Down;
    restart RestartApp Goal::Anew;
}
