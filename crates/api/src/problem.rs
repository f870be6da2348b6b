//! Errors as clients see them: RFC 9457 problem documents.

use axum::{
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_TYPE, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use mainstay_core::{name::Name, node::Refusal, rollout::RolloutRefusal};
use mainstay_pool::Unserved;
use mainstay_wire::api::{Gone, ProblemDocument, ReloadError, RolloutError, WaitError};

const TYPE: &str = "application/problem+json";

#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    document: ProblemDocument,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        let document = ProblemDocument {
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            job: None,
            changes: None,
            node: None,
        };
        Problem { status, document }
    }

    /// For those who speak another language.
    pub(crate) fn into_parts(self) -> (StatusCode, String) {
        (self.status, self.document.detail)
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    /// The configuration cannot be applied; nothing was changed.
    pub(crate) fn invalid(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    pub(crate) fn unauthorized(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNAUTHORIZED, detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, detail)
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> u16 {
        self.document.status
    }

    /// The whole answer, for a client that no server can be set up for.
    pub(crate) fn plain(&self) -> Vec<u8> {
        let body = serde_json::to_string(&self.document).unwrap_or_default();
        let ProblemDocument { status, title, .. } = &self.document;
        let length = body.len();
        format!(
            "HTTP/1.1 {status} {title}\r\ncontent-type: {TYPE}\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }

    pub(crate) fn too_long() -> Problem {
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "a body may hold 1 MiB at most")
    }

    pub(crate) fn too_slow() -> Problem {
        Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")
    }

    pub(crate) fn conflict(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, detail)
    }

    /// The request stands; only the time to wait for it is over.
    pub(crate) fn overdue(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::GATEWAY_TIMEOUT, detail)
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    /// This node belongs to no fleet.
    pub(crate) fn no_fleet() -> Problem {
        let detail = "this node belongs to no fleet: its configuration has no [fleet]";
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    /// There is no room or nobody for it now.
    pub(crate) fn unavailable(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    /// Another node cannot be asked.
    pub(crate) fn unreachable(node: &Name, why: &str) -> Problem {
        let mut problem = Problem::unavailable(format!("{node} cannot be asked: {why}"));
        problem.document.node = Some(node.to_string());
        problem
    }

    pub(crate) fn isolated(node: &Name) -> Problem {
        Problem::conflict(format!(
            "{node} is isolated, and nothing is asked of it: `mainstay fleet readmit {node}` lets it \
             take part again"
        ))
    }

    /// A node has it from another one, and it is for a third.
    pub(crate) fn passed_on_already(node: &Name) -> Problem {
        let detail = format!("it was passed on once, and is for {node}: ask that node itself");
        Problem::new(StatusCode::LOOP_DETECTED, detail)
    }

    /// What another node has answered.
    pub(crate) fn of_node(node: &Name, status: StatusCode, body: &[u8]) -> Problem {
        let told = || Problem::new(status, format!("{node} has answered {status}"));
        let mut problem = match serde_json::from_slice::<ProblemDocument>(body) {
            Ok(document) => Problem { status, document },
            Err(_) => told(),
        };
        problem.document.node = Some(node.to_string());
        problem
    }

    /// Something here does not work as it should.
    pub(crate) fn broken(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }

    /// `near`: what may have been meant.
    pub(crate) fn no_such_job(name: &str, near: Option<&str>) -> Problem {
        match near {
            Some(near) => {
                let detail = format!("there is no job '{name}': did you mean '{near}'?");
                Problem::new(StatusCode::NOT_FOUND, detail)
            }
            None => Refusal::NoSuchJob(name.to_owned()).into(),
        }
    }

    pub(crate) fn no_such_route() -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "there is nothing at this path")
    }

    pub(crate) fn wrong_method() -> Problem {
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not take this method")
    }
}

impl From<Gone> for Problem {
    fn from(gone: Gone) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, gone.to_string())
    }
}

impl From<Unserved> for Problem {
    fn from(unserved: Unserved) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, unserved.to_string())
    }
}

impl From<WaitError> for Problem {
    fn from(error: WaitError) -> Problem {
        let detail = error.to_string();
        let (status, job) = match error {
            WaitError::Gone(gone) => return gone.into(),
            WaitError::Failed(job) | WaitError::Hopeless(job) => (StatusCode::CONFLICT, job),
            WaitError::TimeOver { job, .. } => (StatusCode::GATEWAY_TIMEOUT, job),
            WaitError::TaskFailed { .. } | WaitError::RolloutFailed(_) => {
                return Problem::conflict(detail);
            }
            WaitError::TaskTimeOver { .. } | WaitError::RolloutTimeOver { .. } => {
                return Problem::new(StatusCode::GATEWAY_TIMEOUT, detail);
            }
        };
        let mut problem = Problem::new(status, detail);
        problem.document.job = Some(job);
        problem
    }
}

impl From<ReloadError> for Problem {
    fn from(error: ReloadError) -> Problem {
        let detail = error.to_string();
        match error {
            ReloadError::Gone(gone) => gone.into(),
            ReloadError::Invalid(invalid) => Problem::invalid(invalid.0),
            ReloadError::Listeners(_) => Problem::conflict(detail),
            ReloadError::Refused(refusal) => refusal.into(),
            ReloadError::Unserved(_) | ReloadError::Stale(_) => Problem::unavailable(detail),
            ReloadError::Unreached { changes, error } => {
                let mut problem = Problem::from(error);
                problem.document.detail = detail;
                problem.document.changes = Some(changes);
                problem
            }
        }
    }
}

impl From<RolloutError> for Problem {
    fn from(error: RolloutError) -> Problem {
        let status = match &error {
            RolloutError::NotConfigured
            | RolloutError::UnknownVersion { .. }
            | RolloutError::Refused(RolloutRefusal::UnknownProfile(_)) => StatusCode::NOT_FOUND,
            RolloutError::AmbiguousVersion { .. } => StatusCode::BAD_REQUEST,
            RolloutError::Refused(
                RolloutRefusal::Paused
                | RolloutRefusal::Maintenance
                | RolloutRefusal::Ending
                | RolloutRefusal::Pending(_)
                | RolloutRefusal::NoEarlier(_)
                | RolloutRefusal::NotInHistory(..)
                | RolloutRefusal::IsApplied(..)
                | RolloutRefusal::NotBooted
                | RolloutRefusal::AskedElsewhere(..)
                | RolloutRefusal::NobodyAsks(_)
                | RolloutRefusal::InWaves(_)
                | RolloutRefusal::ForcedInWaves(_),
            )
            | RolloutError::Impossible(_) => StatusCode::CONFLICT,
            RolloutError::Unserved(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Problem::new(status, error.to_string())
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let status = match &refusal {
            Refusal::Environ(_) | Refusal::InputTooLong(_) => StatusCode::BAD_REQUEST,
            Refusal::NoSuchJob(_) | Refusal::NoSuchApp(_) => StatusCode::NOT_FOUND,
            Refusal::NotRunning(_)
            | Refusal::RunsAlready(_)
            | Refusal::NoReload(_)
            | Refusal::Disabled(_)
            | Refusal::TaskUnderWay
            | Refusal::NewRun(_)
            | Refusal::NodeStopping => StatusCode::CONFLICT,
            Refusal::NotKept(_) => StatusCode::INSUFFICIENT_STORAGE,
        };
        Problem::new(status, refusal.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.document).unwrap_or_default();
        let mut answer = (self.status, [(CONTENT_TYPE, TYPE)], body).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }
}
