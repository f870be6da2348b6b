//! The session of one client of the API: each request is let in or turned away before it is routed.

use super::guard::Guard;
use crate::problem::Problem;
use axum::{
    Router,
    body::Body,
    http::header::{CONNECTION, HeaderValue},
    response::{IntoResponse, Response},
};
use futures_util::future::{Either, Ready, ready};
use hyper::{Request, body::Incoming, service::Service};
use hyper_util::service::{TowerToHyperService, TowerToHyperServiceFuture};
use mainstay_net::listen::Peer;
use std::{convert::Infallible, sync::Arc};

pub(super) struct Session {
    /// `None`: a client whom the permissions of the unix socket have let in.
    guard: Option<Arc<Guard>>,
    peer: Peer,
    routes: TowerToHyperService<Router>,
}

impl Session {
    pub(super) fn new(guard: Option<Arc<Guard>>, peer: Peer, routes: Router) -> Session {
        Session { guard, peer, routes: TowerToHyperService::new(routes) }
    }
}

impl Service<Request<Incoming>> for Session {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<
        TowerToHyperServiceFuture<Router, Request<Incoming>>,
        Ready<Result<Response<Body>, Infallible>>,
    >;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let admitted = match &self.guard {
            None => Ok(()),
            Some(guard) => guard.admit(request.headers(), self.peer.is_certified()),
        };
        match admitted {
            Ok(()) => {
                self.peer.has_asked();
                Either::Left(self.routes.call(request))
            }
            Err(problem) => Either::Right(ready(Ok(turned_away(problem)))),
        }
    }
}

/// Its place is for those who may come in.
fn turned_away(problem: Problem) -> Response<Body> {
    let mut answer = problem.into_response();
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}
