//! Hosts in network namespaces of their own, on one switch: what a cable, a switch and a packet can
//! do to those who talk over it.
//!
//! ```text
//!   host 1 ── eth0 ┐            ┌ eth0 ── host 2      10.77.0.N on each
//!                  port1 ─ br0 ─ port2                in a namespace of the switch alone
//! ```
//!
//! A namespace lives as long as a process that sleeps in it, so that a node can end and begin again
//! on the same host. Nothing of it touches the network of the machine.

use crate::{Setup, needs, until};
use std::{
    io::Write,
    process::{Child, Command, Stdio},
    time::Duration,
};

/// What the switch does to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// The bridge of the kernel: every frame arrives, at once.
    Bridge,
    /// A program in its place, since not every kernel can lose and delay: of a hundred frames
    /// between two hosts it drops and repeats so many, and delays each by up to so long.
    Relay { lost: u8, twice: u8, delay: Duration },
}

/// A namespace and the process that keeps it.
#[derive(Debug)]
struct Namespace {
    holder: Child,
}

impl Namespace {
    fn new() -> Namespace {
        let holder = Command::new("unshare")
            // It ends when its input does: with the test, however that ends.
            .args(["--net", "sh", "-c", "ip link set lo up && exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare can be started");
        let namespace = Namespace { holder };
        namespace.answer();
        namespace
    }

    /// Waits until the holder has become what echoes: the namespace is there.
    fn answer(&self) {
        let own = std::fs::read_link("/proc/self/ns/net").expect("there is /proc");
        until("there is a namespace", || {
            let its = std::fs::read_link(format!("/proc/{}/ns/net", self.pid())).ok()?;
            let name = std::fs::read_to_string(format!("/proc/{}/comm", self.pid())).ok()?;
            (its != own && name.trim() == "cat").then_some(())
        });
    }

    fn pid(&self) -> u32 {
        self.holder.id()
    }

    /// The words before a command that let it run in here.
    fn enter(&self) -> [String; 2] {
        ["nsenter".to_owned(), format!("--net=/proc/{}/ns/net", self.pid())]
    }

    fn ip(&self, args: &str) {
        let words: Vec<&str> = std::iter::once("ip").chain(args.split(' ')).collect();
        self.run(&words);
    }

    fn run(&self, command: &[&str]) {
        needs(command[0]);
        let [program, net] = self.enter();
        let output = Command::new(program).arg(net).args(command).output();
        let output = output.expect("nsenter can be started");
        assert!(output.status.success(), "{command:?}: {output:?}");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Hosts 1 to N on one switch.
#[derive(Debug)]
pub struct Network {
    /// The relay goes before the namespace that it is in.
    relay: Option<Relay>,
    switch: Namespace,
    hosts: Vec<Namespace>,
}

impl Network {
    #[must_use]
    pub fn new(hosts: u8, kind: Switch) -> Network {
        let switch = Namespace::new();
        if kind == Switch::Bridge {
            switch.ip("link add br0 type bridge");
            switch.ip("link set br0 up");
        }
        let hosts: Vec<Namespace> = (0..hosts).map(|_| Namespace::new()).collect();
        for (host, n) in hosts.iter().zip(1..) {
            switch.ip(&format!("link add port{n} type veth peer name eth0 netns {}", host.pid()));
            if kind == Switch::Bridge {
                switch.ip(&format!("link set port{n} master br0"));
            }
            switch.ip(&format!("link set port{n} up"));
            host.ip(&format!("link set eth0 address {}", hardware(n)));
            host.ip(&format!("addr add {}/24 dev eth0", Network::address(n)));
            host.ip("link set eth0 up");
            if kind != Switch::Bridge {
                // What the relay sees is what a card would send: with checksums, and in pieces.
                host.run(&["ethtool", "-K", "eth0", "tx", "off", "tso", "off", "gso", "off"]);
            }
        }
        let relay = match kind {
            Switch::Bridge => None,
            Switch::Relay { lost, twice, delay } => {
                Some(Relay::start(&switch, hosts.len(), lost, twice, delay))
            }
        };
        Network { relay, switch, hosts }
    }

    #[must_use]
    pub fn address(host: u8) -> String {
        format!("10.77.0.{host}")
    }

    pub fn hosts(&self) -> impl Iterator<Item = u8> {
        (1..).take(self.hosts.len())
    }

    /// A node that runs on a host.
    #[must_use]
    pub fn on(&self, host: u8, setup: Setup) -> Setup {
        let [program, net] = self.host(host).enter();
        setup.under(&[&program, &net])
    }

    /// Pulls the cable of a host.
    pub fn cut(&self, host: u8) {
        self.switch.ip(&format!("link set port{host} down"));
    }

    /// Plugs it in again.
    pub fn heal(&self, host: u8) {
        self.switch.ip(&format!("link set port{host} up"));
    }

    /// Nothing that a host sends to another arrives there, which neither of them is told; what the
    /// other sends does. It is addressed to a card that nobody has.
    pub fn mute(&self, from: u8, to: u8) {
        self.neighbour(from, to, &hardware(200 + to));
    }

    /// The end of [`Network::mute`].
    pub fn unmute(&self, from: u8, to: u8) {
        self.neighbour(from, to, &hardware(to));
    }

    fn neighbour(&self, from: u8, to: u8, card: &str) {
        let entry = format!("{} lladdr {card} dev eth0 nud permanent", Network::address(to));
        self.host(from).ip(&format!("neigh replace {entry}"));
    }

    /// How many frames the relay has lost so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.relay.as_ref().map_or(0, Relay::lost)
    }

    fn host(&self, host: u8) -> &Namespace {
        &self.hosts[usize::from(host) - 1]
    }
}

/// The card of a host.
fn hardware(host: u8) -> String {
    format!("02:00:00:00:77:{host:02x}")
}

/// A switch that is not to be trusted.
#[derive(Debug)]
struct Relay {
    child: Child,
    told: std::path::PathBuf,
    _scratch: crate::Scratch,
}

impl Relay {
    fn start(switch: &Namespace, ports: usize, lost: u8, twice: u8, delay: Duration) -> Relay {
        let scratch = crate::Scratch::new();
        let told = scratch.path().join("lost");
        let [program, net] = switch.enter();
        let figures = [ports.to_string(), lost.to_string(), twice.to_string()];
        let mut child = Command::new(program)
            .arg(net)
            .args(["python3", "-"])
            .args(figures)
            .arg(delay.as_millis().to_string())
            .arg(&told)
            .stdin(Stdio::piped())
            .spawn()
            .expect("python3 can be started");
        let mut input = child.stdin.take().expect("it is piped");
        input.write_all(include_bytes!("relay.py")).expect("it reads its program");
        drop(input);
        let relay = Relay { child, told, _scratch: scratch };
        until("the relay listens", || relay.told.exists().then_some(()));
        relay
    }

    fn lost(&self) -> u64 {
        let text = std::fs::read_to_string(&self.told).unwrap_or_default();
        text.trim().parse().unwrap_or_default()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
