//! Errors as clients see them: RFC 9457 problem documents.

use axum::{
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_TYPE, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use mainstay_agent::{
    Gone,
    view::{Changes, JobStatus},
};
use mainstay_core::node::Refusal;
use serde::Serialize;

const TYPE: &str = "application/problem+json";

/// `type` is left out: it is "about:blank", and `title` says what the status means.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    title: &'static str,
    status: u16,
    detail: String,
    /// The job as it is now, where that explains the matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<Box<JobStatus>>,
    /// What was brought into force all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Box<Changes>>,
}

impl Problem {
    fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        Problem {
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into(),
            job: None,
            changes: None,
        }
    }

    pub(crate) fn about(mut self, job: JobStatus) -> Problem {
        self.job = Some(Box::new(job));
        self
    }

    /// For those who speak another language.
    pub(crate) fn into_parts(self) -> (StatusCode, String) {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, self.detail)
    }

    pub(crate) fn after(mut self, changes: Changes) -> Problem {
        self.detail = format!("the configuration is in force, but {}", self.detail);
        self.changes = Some(Box::new(changes));
        self
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
        self.status
    }

    /// The whole answer, for a client that no server can be set up for.
    pub(crate) fn plain(&self) -> Vec<u8> {
        let body = serde_json::to_string(self).unwrap_or_default();
        let (status, title, length) = (self.status, self.title, body.len());
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

    /// The request was taken and goes on; only the time to wait for it is over.
    pub(crate) fn time_over(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::GATEWAY_TIMEOUT, detail)
    }

    /// Something here does not work as it should.
    pub(crate) fn broken(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }

    pub(crate) fn no_such_job(name: &str) -> Problem {
        Refusal::NoSuchJob(name.to_owned()).into()
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

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let status = match &refusal {
            Refusal::Environ(_) => StatusCode::BAD_REQUEST,
            Refusal::NoSuchJob(_) | Refusal::NoSuchApp(_) => StatusCode::NOT_FOUND,
            Refusal::NotRunning(_)
            | Refusal::RunsAlready(_)
            | Refusal::NoReload(_)
            | Refusal::Disabled(_)
            | Refusal::NodeStopping => StatusCode::CONFLICT,
        };
        Problem::new(status, refusal.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut answer = (status, [(CONTENT_TYPE, TYPE)], body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }
}
