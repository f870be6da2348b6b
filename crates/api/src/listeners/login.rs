//! The login of XML-RPC: a user and a password, as clients of Supervisor send them.
//!
//! As with tokens, only a hash of both is kept.

use super::guard::{Hash, hash, same_site};
use crate::problem::Problem;
use axum::http::{HeaderMap, header};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use mainstay_core::plan::{ApiPlan, Login};
use mainstay_net::files;
use mainstay_pool::CONFIGURATION;
use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use subtle::ConstantTimeEq;
use tokio::sync::watch;

/// What those know who are let in.
#[derive(Debug, Clone)]
pub(super) struct Credentials(Arc<Mutex<Hash>>);

impl Credentials {
    pub(super) async fn read(login: &Login) -> io::Result<Credentials> {
        let known = expected(login.clone()).await?;
        Ok(Credentials(Arc::new(Mutex::new(known))))
    }

    /// Reads the password again whenever a plan is applied; one that cannot be read stays as it was.
    pub(super) async fn follow(&self, login: &Login, mut plans: watch::Receiver<ApiPlan>) {
        // The agent holds the other end for as long as it lives.
        while plans.changed().await.is_ok() {
            match expected(login.clone()).await {
                Ok(next) => *self.lock() = next,
                Err(error) => tracing::error!("the password of XML-RPC stays as it was: {error}"),
            }
        }
    }

    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<(), Problem> {
        same_site(headers)?;
        let known = *self.lock();
        match said(headers) {
            Some(said) if bool::from(hash(&said).ct_eq(&known)) => Ok(()),
            Some(_) => Err(Problem::unauthorized("this is not the user or not the password")),
            None => Err(Problem::unauthorized("a user and a password are needed here")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Hash> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hash of `user:password`.
async fn expected(login: Login) -> io::Result<Hash> {
    let read = CONFIGURATION.run(move || {
        let bytes = files::read_private(&login.password_file).map_err(io::Error::other)?;
        let password = bytes.trim_ascii();
        if password.is_empty() || password.contains(&b'\n') {
            let path = login.password_file.display();
            return Err(io::Error::other(format!("{path} is not one line with a password")));
        }
        Ok(hash(&[login.user.as_bytes(), b":", password].concat()))
    });
    read.await?
}

/// What a client says after `Basic`.
fn said(headers: &HeaderMap) -> Option<Vec<u8>> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, rest) = value.split_at_checked(6)?;
    let basic = scheme.eq_ignore_ascii_case(b"basic ");
    basic.then(|| STANDARD.decode(rest.trim_ascii()).ok()).flatten()
}
