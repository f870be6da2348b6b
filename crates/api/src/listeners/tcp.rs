//! The listener of the API: a TCP socket, and the guard who decides whom it lets in.
//!
//! A reload opens the next listener before the one in use is closed, and changes nothing at all when
//! it cannot be opened. What is read from files (token, certificates) is read again each time.

use super::guard::{Guard, GuardError};
use mainstay_agent::PrepareListeners;
use mainstay_core::plan::ApiPlan;
use mainstay_net::listen::{Listener, bind_tcp};
use mainstay_pool::{CONFIGURATION, Unserved};
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};
use thiserror::Error;
use tokio::sync::watch;

#[derive(Debug)]
pub(crate) struct ApiListener {
    pub(crate) address: SocketAddr,
    pub(crate) listener: Arc<Listener>,
    pub(crate) guard: Arc<Guard>,
    /// Becomes true when it is closed: those who came in through it have to leave.
    pub(crate) closed: watch::Sender<bool>,
}

/// Why the API cannot be listened at as `[api]` says.
#[derive(Debug, Error)]
pub(crate) enum ListenError {
    #[error(transparent)]
    Guard(#[from] GuardError),
    #[error("the files of [api] were not read: {0}")]
    Unread(#[from] Unserved),
    #[error("cannot listen on {address}: {source}{}", advice(source))]
    Bind { address: SocketAddr, source: io::Error },
}

/// The listener in use, and the next one while a reload is under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct ApiListeners(Arc<Mutex<Both>>);

#[derive(Debug, Default)]
struct Both {
    used: Option<Arc<ApiListener>>,
    /// `Some(None)`: the plan to come has none.
    next: Option<Option<Arc<ApiListener>>>,
}

impl ApiListeners {
    pub(crate) fn used(&self) -> Option<Arc<ApiListener>> {
        self.lock().used.clone()
    }

    /// Goes over to what the plan in force wants, as prepared if it was.
    pub(crate) async fn follow(&self, plan: &ApiPlan) -> Result<(), ListenError> {
        let prepared = self.lock().next.take();
        let fits =
            |opened: &Option<Arc<ApiListener>>| opened.as_ref().map(|it| it.address) == plan.listen;
        let next = match prepared.filter(fits) {
            Some(next) => next,
            None => self.open(plan).await?,
        };
        let before = std::mem::replace(&mut self.lock().used, next.clone());
        if let Some(before) = before
            && !next.is_some_and(|next| Arc::ptr_eq(&next, &before))
        {
            before.closed.send_replace(true);
        }
        Ok(())
    }

    /// The listener in use if it would be the same.
    async fn open(&self, plan: &ApiPlan) -> Result<Option<Arc<ApiListener>>, ListenError> {
        let Some(address) = plan.listen else { return Ok(None) };
        let read = plan.clone();
        let guard = CONFIGURATION.run(move || Guard::new(&read)).await??;
        let used = self.used().filter(|used| used.address == address);
        let listener = match used {
            Some(used) if *used.guard == guard => return Ok(Some(used)),
            Some(used) => used.listener.clone(),
            None => {
                let bound = bind_tcp(address);
                let bound = bound.map_err(|source| ListenError::Bind { address, source })?;
                Arc::new(Listener::Tcp(bound))
            }
        };
        let (guard, closed) = (Arc::new(guard), watch::Sender::new(false));
        Ok(Some(Arc::new(ApiListener { address, listener, guard, closed })))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Both> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PrepareListeners for ApiListeners {
    type Error = ListenError;

    async fn prepare(&self, plan: &ApiPlan) -> Result<(), ListenError> {
        let next = self.open(plan).await?;
        self.lock().next = Some(next);
        Ok(())
    }

    fn give_up(&self) {
        self.lock().next = None;
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; `ss -ltnp` shows who does",
        io::ErrorKind::AddrNotAvailable => "; it is not an address of this machine",
        io::ErrorKind::PermissionDenied => "; ports below 1024 are for root",
        _ => "",
    }
}
