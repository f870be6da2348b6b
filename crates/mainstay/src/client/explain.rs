//! Why a request has no answer, and what to try, for people.

use super::SOCKET;
use crate::{
    failure::{FAILED, Failure, NO_AGENT},
    keeper,
};
use mainstay_net::{
    http::HttpError,
    tls::{Distrust, TlsError},
};
use std::{error::Error, io, path::Path};

pub(super) fn local(run_dir: &Path, error: &HttpError) -> Failure {
    let path = run_dir.join(SOCKET);
    let path = path.display();
    let why = reason(error);
    match error.io_kind() {
        Some(io::ErrorKind::NotFound) => Failure::new(
            NO_AGENT,
            format!(
                "no node runs in {}: there is no {SOCKET}. Start one with `mainstay run`, or \
                 name its configuration with -c, its directory with --run-dir or \
                 MAINSTAY_RUN_DIR; `mainstay ps` lists those that run",
                run_dir.display()
            ),
        ),
        Some(io::ErrorKind::PermissionDenied) => Failure::new(
            NO_AGENT,
            format!("cannot connect to {path}: {why}; try as the user who runs the node"),
        ),
        _ if !keeper::is_there(run_dir) => Failure::new(
            NO_AGENT,
            format!("no agent answers at {path} ({why}); is `mainstay run` still running?"),
        ),
        _ if !error.is_unsent() && !is_slow(error) => Failure::new(
            FAILED,
            format!(
                "the agent ended before it answered ({why}) and is being restarted; every job \
                 goes on. It may have taken the request: look at `mainstay status`"
            ),
        ),
        _ => Failure::new(
            NO_AGENT,
            format!(
                "no agent answers at {path} ({why}): the keeper lives, so the agent is stuck or \
                 being restarted, and every job goes on. Try again; `mainstay logs mainstay` \
                 may say why"
            ),
        ),
    }
}

pub(super) fn remote(url: &str, error: &HttpError) -> Failure {
    if let HttpError::Tls(TlsError::Untrusted { distrust, .. }) = error {
        return untrusted(url, distrust);
    }
    let why = reason(error);
    if error.requires_certificate() {
        return Failure::failed(format!(
            "{url} lets in by client certificate only: name yours with --cert and --key"
        ));
    }
    match error.is_unsent() || is_slow(error) {
        true => Failure::new(NO_AGENT, format!("no node answers at {url}: {why}")),
        false => Failure::failed(format!(
            "{url} ended the connection before it answered ({why}); it may have taken the request: \
             look at `mainstay status`"
        )),
    }
}

fn untrusted(url: &str, distrust: &Distrust) -> Failure {
    Failure::failed(match distrust {
        Distrust::UnknownIssuer { .. } => format!(
            "{url} shows a certificate of an authority that is not trusted here: name it with --ca \
             or MAINSTAY_CA"
        ),
        Distrust::Authority => format!(
            "{url} shows the certificate of an authority as its own: give that node one with \
             basicConstraints CA:FALSE"
        ),
        Distrust::WrongName { why, .. } | Distrust::Other(why) => format!(
            "{url} cannot prove who it is: invalid peer certificate: {why}; see its [api] tls.cert"
        ),
    })
}

fn is_slow(error: &HttpError) -> bool {
    matches!(error.io_kind(), Some(io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut))
}

/// The cause without what it happened to.
fn reason(error: &HttpError) -> String {
    if is_slow(error) {
        return "it does not react in time".to_owned();
    }
    let mut last: &dyn Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
