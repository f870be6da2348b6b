//! Routes that concern an app: its jobs, started and stopped together.

use crate::{
    Reach,
    body::{Asked, Body, InPath},
    goal::Goal,
    node::Nothing,
    pursuit::{Answer, Subject, Wait},
};
use axum::extract::State;
use mainstay_core::{name::Name, node::Request};

macro_rules! pursuing {
    ($($route:ident $request:ident $goal:expr;)*) => {$(
        pub(crate) async fn $route(
            State(reach): State<Reach>,
            InPath(name): InPath,
            Asked(wait): Asked<Wait>,
            Body(Nothing {}): Body<Nothing>,
        ) -> Answer {
            let request = |app: Name| Request::$request { app };
            Subject::of_app(&name)?.pursue(&reach, request, $goal, &wait).await
        }
    )*};
}

pursuing! {
    start StartApp Goal::Up { beyond: 0 };
    stop StopApp Goal::Down;
    restart RestartApp Goal::Anew;
}
