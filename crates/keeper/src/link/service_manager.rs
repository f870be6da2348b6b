//! What the service manager that started the node is told (`NOTIFY_SOCKET`, sd_notify(3)).
//!
//! | when | what |
//! |---|---|
//! | startup is said, and what is rolled out is in place | READY |
//! | it is not in place yet | that the start may take as long as it may take |
//! | a plan has come into force | RELOADING, and READY again |
//! | the node stops, whoever asked | STOPPING, and that it may take as long as it may take |
//! | it stops to begin anew | RELOADING, and READY once the new run has started |
//! | something else is to be seen | STATUS |
//! | twice within `WATCHDOG_USEC` | WATCHDOG: the keeper's own loop, whatever becomes of the agent |
//!
//! A word that is not taken is said again: a manager that is busy must not miss the first one.

use crate::{
    event_loop::deadline::Deadline,
    keeper::{Keeper, Role},
    link::node::Node,
};
use mainstay_core::{clock::Mono, node::NodePhase};
use mainstay_sys::{clock, nonblocking, signal};
use std::{ffi::OsString, io, time::Duration};

/// After the time that the node's stop may take: the keeper's last steps.
const LAST_STEPS: Duration = Duration::from_secs(2);
/// A word that was not taken is said again after this.
const AGAIN: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct ServiceManager {
    socket: OsString,
    watchdog: Option<Duration>,
    told: Standing,
    reloaded: bool,
    /// Something was not taken: it is said again at a deadline.
    waits: bool,
}

/// What there is to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Standing {
    phase: NodePhase,
    /// It stops to begin anew.
    again: bool,
    has_agent: bool,
    /// It is not ready before what is rolled out is in place, which may take until then.
    held_until: Option<Mono>,
}

impl ServiceManager {
    /// `None`: nobody wants to be told.
    pub(crate) fn from_env() -> Option<ServiceManager> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
        let meant = variable("WATCHDOG_PID").is_none()
            || number("WATCHDOG_PID") == Some(u64::from(signal::own_pid()));
        let watchdog = number("WATCHDOG_USEC").filter(|micros| meant && *micros > 0);
        Some(ServiceManager {
            socket: variable("NOTIFY_SOCKET")?,
            watchdog: watchdog.map(Duration::from_micros),
            told: Standing {
                phase: NodePhase::Starting,
                again: false,
                has_agent: false,
                held_until: None,
            },
            reloaded: false,
            waits: false,
        })
    }

    /// A plan has come into force.
    pub(crate) fn reloaded(&mut self) {
        self.reloaded = true;
    }

    /// Whether it was taken; a manager that is gone needs no words.
    fn say(&self, words: &str) -> bool {
        let said = nonblocking::send_datagram(&self.socket, words.as_bytes());
        !said.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Whether all of it was taken.
    fn tell(&mut self, now: Standing, stop_timeout: Duration) -> bool {
        let was_ready = is_ready(self.told.phase);
        if std::mem::take(&mut self.reloaded) && was_ready && is_ready(now.phase) {
            let micros = clock::monotonic() / 1000;
            if !self.say(&format!("RELOADING=1\nMONOTONIC_USEC={micros}")) || !self.say("READY=1") {
                self.reloaded = true;
                return false;
            }
        }
        if now == self.told {
            return true;
        }
        let mut words = format!("STATUS={}", now.status());
        match now.phase {
            NodePhase::Starting => {
                if let Some(until) = now.held_until {
                    let left = until.since(Mono(clock::monotonic())).saturating_add(LAST_STEPS);
                    words.push_str(&format!("\nEXTEND_TIMEOUT_USEC={}", left.as_micros()));
                }
            }
            NodePhase::Running | NodePhase::Maintenance if was_ready => {}
            NodePhase::Running | NodePhase::Maintenance => words.push_str("\nREADY=1"),
            NodePhase::Stopping => {
                let micros = stop_timeout.saturating_add(LAST_STEPS).as_micros();
                let word = match now.again {
                    true => format!("RELOADING=1\nMONOTONIC_USEC={}", clock::monotonic() / 1000),
                    false => "STOPPING=1".to_owned(),
                };
                words.push_str(&format!("\n{word}\nEXTEND_TIMEOUT_USEC={micros}"));
            }
        }
        let taken = self.say(&words);
        if taken {
            self.told = now;
        }
        taken
    }
}

impl Standing {
    fn of(node: &Node) -> Standing {
        let for_good = node.stop_asked.is_some() || node.stopping_alone;
        let ends = for_good || node.ending.is_some();
        let told = node.told.map_or(NodePhase::Starting, |told| told.phase);
        let held_until = node.told.and_then(|told| told.held_until);
        let waits = held_until.is_some() && is_ready(told);
        Standing {
            phase: match ends {
                true => NodePhase::Stopping,
                false if waits => NodePhase::Starting,
                false => told,
            },
            held_until,
            again: !for_good && node.told.is_some_and(|told| told.again),
            has_agent: node.agent.is_some(),
        }
    }

    fn status(self) -> String {
        let phase = match self.phase {
            NodePhase::Starting => "starting",
            NodePhase::Running => "running",
            NodePhase::Maintenance => "in maintenance",
            NodePhase::Stopping => "stopping",
        };
        let waits = !self.has_agent && self.phase != NodePhase::Starting;
        if waits { format!("{phase}, without an agent") } else { phase.to_owned() }
    }
}

fn is_ready(phase: NodePhase) -> bool {
    match phase {
        NodePhase::Running | NodePhase::Maintenance => true,
        NodePhase::Starting | NodePhase::Stopping => false,
    }
}

impl Keeper {
    /// Tells what has changed since it was last told.
    pub(crate) fn tell_service_manager(&mut self) {
        let Keeper { role: Role::Node(node), deadlines, .. } = self else { return };
        let (now, stop_timeout) = (Standing::of(node), node.stop_timeout);
        let Some(manager) = node.service_manager.as_mut().filter(|it| !it.waits) else { return };
        manager.waits = !manager.tell(now, stop_timeout);
        if manager.waits {
            deadlines.after(AGAIN, Deadline::ServiceManager);
        }
    }

    pub(crate) fn tell_service_manager_again(&mut self) {
        if let Some(manager) = self.node().and_then(|node| node.service_manager.as_mut()) {
            manager.waits = false;
        }
    }

    /// The loop goes round: that is what a watchdog wants to know.
    pub(crate) fn feed_watchdog(&mut self) {
        let Keeper { role: Role::Node(node), deadlines, .. } = self else { return };
        let Some(manager) = &node.service_manager else { return };
        if let Some(every) = manager.watchdog {
            manager.say("WATCHDOG=1");
            deadlines.after(every / 2, Deadline::Watchdog);
        }
    }
}
