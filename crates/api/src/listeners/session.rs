//! The session of one client of the API: each request is let in or turned away before it is routed.

use super::{guard::Guard, login::Credentials};
use crate::problem::Problem;
use axum::{
    Router,
    body::Body,
    http::{
        HeaderMap,
        header::{CONNECTION, HeaderValue, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use futures_util::future::{Either, Ready, ready};
use hyper::{Request, body::Incoming, service::Service};
use hyper_util::service::{TowerToHyperService, TowerToHyperServiceFuture};
use mainstay_net::listen::Caller;
use std::{convert::Infallible, sync::Arc};

/// Who is let in.
#[derive(Debug, Clone)]
pub(super) enum Admission {
    /// Whoever could connect: the permissions of a socket decide, or nobody has to.
    Everybody,
    Guarded(Arc<Guard>),
    Login(Credentials),
}

impl Admission {
    fn admit(&self, headers: &HeaderMap, caller: &Caller) -> Result<(), Problem> {
        match self {
            Admission::Everybody => Ok(()),
            Admission::Guarded(guard) => guard.admit(headers, caller.is_certified()),
            Admission::Login(credentials) => credentials.admit(headers),
        }
    }

    /// The place of one who is turned away is for those who may come in.
    fn refuse(&self, problem: Problem) -> Response<Body> {
        let mut answer = problem.into_response();
        let headers = answer.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if let (Admission::Login(_), true) = (self, headers.contains_key(WWW_AUTHENTICATE)) {
            let basic = HeaderValue::from_static("Basic realm=\"mainstay\"");
            headers.insert(WWW_AUTHENTICATE, basic);
        }
        answer
    }
}

pub(super) struct Session {
    admission: Admission,
    caller: Caller,
    routes: TowerToHyperService<Router>,
}

impl Session {
    pub(super) fn new(admission: Admission, caller: Caller, routes: Router) -> Session {
        Session { admission, caller, routes: TowerToHyperService::new(routes) }
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
        match self.admission.admit(request.headers(), &self.caller) {
            Ok(()) => {
                self.caller.has_asked();
                Either::Left(self.routes.call(request))
            }
            Err(problem) => Either::Right(ready(Ok(self.admission.refuse(problem)))),
        }
    }
}
