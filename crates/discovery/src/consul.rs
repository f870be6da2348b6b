//! A Consul agent, spoken to over its HTTP interface.
//!
//! An entry and its ttl check `service:<id>` are made in one registration. Whether an entry is
//! there is learned by telling its standing: an agent that has lost it does not know the check.
//! Watches wait at the agent (blocking queries), each on a connection of its own as long as there
//! are few enough; the others ask once in each interval.

mod client;
mod protocol;

use crate::driver::{Driver, Failure};
use client::{Answer, Ask, ConsulClient};
use mainstay_core::discovery::{Consul, InstanceList, Query, Registration, Standing};
use mainstay_net::{
    http::{Method, StatusCode, Terms},
    percent,
};
use mainstay_pool::COMPUTE;
use protocol::{HealthEntry, Registered};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::sleep,
};

/// Connections for short requests, however many services there are.
const CALLS: usize = 16;
/// Connections on which watches wait: an agent takes 200 from one address unless told otherwise.
const WAITING: usize = 64;
/// And those on which watches ask without waiting.
const ASKING: usize = 16;

const CALL_LIMIT: Duration = Duration::from_secs(5);
/// Another data centre may be far away.
const LOOK_LIMIT: Duration = Duration::from_secs(10);
const SHORTEST_WAIT: Duration = Duration::from_millis(20);
/// The agent itself allows no more.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(crate) struct ConsulDriver {
    calls: ConsulClient,
    looks: ConsulClient,
    waiting: Arc<Semaphore>,
}

impl ConsulDriver {
    pub(crate) fn new(consul: &Consul) -> ConsulDriver {
        ConsulDriver {
            calls: ConsulClient::new(consul, CALLS),
            looks: ConsulClient::new(consul, WAITING + ASKING),
            waiting: Arc::new(Semaphore::new(WAITING)),
        }
    }

    async fn call(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Answer, Failure> {
        let terms = Terms { limit: CALL_LIMIT, lasting: true };
        self.calls.ask(Ask { method, path, body, terms }).await
    }

    /// Changes an entry that the agent should have. Older ones (1.8 is one) have no status of their
    /// own for what they do not have: those are asked for it.
    async fn change(&self, path: &str, entry: ConsulEntry<'_>) -> Result<(), Failure> {
        let answer = self.call(Method::PUT, path, Vec::new()).await?;
        match answer.status {
            status if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND => Err(Failure::Unknown),
            StatusCode::INTERNAL_SERVER_ERROR if self.lacks(entry).await? => Err(Failure::Unknown),
            _ => Err(Failure::Failed(protocol::refused(&answer))),
        }
    }

    async fn lacks(&self, entry: ConsulEntry<'_>) -> Result<bool, Failure> {
        match entry {
            ConsulEntry::Service(id) => {
                let path = format!("/v1/agent/service/{}", percent::segment(id));
                let answer = self.call(Method::GET, &path, Vec::new()).await?;
                Ok(answer.status == StatusCode::NOT_FOUND)
            }
            ConsulEntry::Check(id) => {
                let answer = self.call(Method::GET, "/v1/agent/checks", Vec::new()).await?;
                Ok(answer.status.is_success() && protocol::lacks_check(&answer.body, id))
            }
        }
    }
}

/// What the agent is asked for, by the id of the service.
#[derive(Debug, Clone, Copy)]
enum ConsulEntry<'a> {
    Service(&'a str),
    /// The one that comes with the service.
    Check(&'a str),
}

impl Driver for ConsulDriver {
    type Cursor = ConsulCursor;

    async fn register(
        &self,
        registration: &Registration,
        standing: Standing,
    ) -> Result<(), Failure> {
        let body = serde_json::to_vec(&Registered::new(registration, standing))
            .map_err(|error| Failure::of(format!("the registration cannot be written: {error}")))?;
        // Checks that an earlier registration had under this id must not go on.
        let path = "/v1/agent/service/register?replace-existing-checks=true";
        let answer = self.call(Method::PUT, path, body).await?;
        match answer.status {
            status if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND => Err(Failure::Failed(
                "the server does not know how to register a service: is it a Consul agent?".into(),
            )),
            _ => Err(Failure::Failed(protocol::refused(&answer))),
        }
    }

    async fn tell(
        &self,
        registration: &Registration,
        standing: Standing,
        note: &str,
    ) -> Result<(), Failure> {
        let word = match standing {
            Standing::Passing => "pass",
            Standing::Warning => "warn",
            Standing::Critical => "fail",
        };
        let (id, note) =
            (percent::segment(&registration.id), percent::segment(protocol::short(note)));
        let path = format!("/v1/agent/check/{word}/service:{id}?note={note}");
        self.change(&path, ConsulEntry::Check(&registration.id)).await
    }

    async fn remove(&self, id: &str, _: Option<&str>) -> Result<(), Failure> {
        let path = format!("/v1/agent/service/deregister/{}", percent::segment(id));
        self.change(&path, ConsulEntry::Service(id)).await
    }

    fn cursor(&self, query: &Query) -> ConsulCursor {
        ConsulCursor { query: query.clone(), seen: SeenIndex::Nothing, place: None }
    }

    async fn look(&self, cursor: &mut ConsulCursor) -> Result<InstanceList, Failure> {
        let ConsulCursor { query, seen, place } = cursor;
        let index = match *seen {
            SeenIndex::Nothing => None,
            SeenIndex::Unnumbered => {
                sleep(query.interval).await;
                None
            }
            SeenIndex::Up(index) => {
                if place.is_none() {
                    *place = self.waiting.clone().try_acquire_owned().ok();
                }
                if place.is_none() {
                    sleep(query.interval).await;
                }
                place.as_ref().map(|_| index)
            }
        };
        let path = protocol::health(query, index, wait(query));
        let limit = match index {
            None => LOOK_LIMIT,
            Some(_) => query.interval.min(LONGEST_WAIT) + LOOK_LIMIT,
        };
        let ask = Ask {
            method: Method::GET,
            path: &path,
            body: Vec::new(),
            terms: Terms { limit, lasting: index.is_none() },
        };
        let answer = self.looks.ask(ask).await?;
        if !answer.status.is_success() {
            return Err(Failure::Failed(protocol::refused(&answer)));
        }
        *seen = seen.next(answer.index);
        let read = COMPUTE.run(move || -> serde_json::Result<InstanceList> {
            let entries: Vec<HealthEntry> = serde_json::from_slice(&answer.body)?;
            Ok(entries.into_iter().filter_map(HealthEntry::instance).collect())
        });
        read.await.map_err(Failure::of)?.map_err(|error| {
            Failure::of(format!("the answer about '{}' makes no sense: {error}", query.service))
        })
    }
}

/// The agent waits up to a sixteenth longer than it is asked to; and when it is asked to wait for
/// no time at all, as long as it likes.
fn wait(query: &Query) -> Duration {
    query.interval.clamp(SHORTEST_WAIT, LONGEST_WAIT) * 16 / 17
}

/// The place of one watch: the index of the last answer.
#[derive(Debug)]
pub(crate) struct ConsulCursor {
    query: Query,
    seen: SeenIndex,
    /// Kept for the life of the watch.
    place: Option<OwnedSemaphorePermit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeenIndex {
    Nothing,
    /// The state that has this number.
    Up(u64),
    /// A state without a number: news cannot be waited for.
    Unnumbered,
}

impl SeenIndex {
    /// A number that goes backwards is another server's, or that of a restored one: what it counts
    /// is not what we have seen.
    fn next(self, index: Option<u64>) -> SeenIndex {
        match (self, index) {
            (_, None | Some(0)) => SeenIndex::Unnumbered,
            (SeenIndex::Up(before), Some(index)) if index < before => SeenIndex::Nothing,
            (_, Some(index)) => SeenIndex::Up(index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_goes_backwards_or_is_missing_is_not_waited_on() {
        assert_eq!(SeenIndex::Nothing.next(Some(7)), SeenIndex::Up(7));
        assert_eq!(SeenIndex::Up(7).next(Some(7)), SeenIndex::Up(7));
        assert_eq!(SeenIndex::Up(7).next(Some(9)), SeenIndex::Up(9));
        assert_eq!(SeenIndex::Up(7).next(Some(6)), SeenIndex::Nothing);
        assert_eq!(SeenIndex::Up(7).next(Some(0)), SeenIndex::Unnumbered);
        assert_eq!(SeenIndex::Up(7).next(None), SeenIndex::Unnumbered);
        assert_eq!(SeenIndex::Unnumbered.next(Some(3)), SeenIndex::Up(3));
    }
}
