//! Signal files: how a node without the right to tell units has them told.
//!
//! A path unit watches a file for each unit and verb; its helper, which has the right, runs
//! `systemctl`. The file says nothing but that something is wanted. What came of it is read over
//! D-Bus, from the helper and from the unit, which needs no right.

use super::{
    names::{instance_unit, unit_name},
    units::{UnitError, Units},
};
use mainstay_core::{plan::ReloadMethod, rollout::InstanceNumber};
use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::sleep;

/// Between two looks at the helper.
const AGAIN: Duration = Duration::from_millis(50);

/// What is done to a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Reload,
    Start,
    Stop,
}

impl Verb {
    const ALL: [Verb; 3] = [Verb::Reload, Verb::Start, Verb::Stop];

    fn as_str(self) -> &'static str {
        match self {
            Verb::Reload => "reload",
            Verb::Start => "start",
            Verb::Stop => "stop",
        }
    }

    /// A unit that does not run is not started by a reload.
    fn command(self) -> &'static str {
        match self {
            Verb::Reload => "try-reload-or-restart",
            Verb::Start => "start",
            Verb::Stop => "stop",
        }
    }
}

/// The directory of signal files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalFiles {
    directory: PathBuf,
}

impl SignalFiles {
    #[must_use]
    pub fn new(directory: &Path) -> SignalFiles {
        SignalFiles { directory: directory.to_owned() }
    }

    /// The units that have to be installed, by their file names; a path unit is to be enabled for
    /// each unit that is told: `mainstay-reload@nginx.service.path`.
    #[must_use]
    pub fn units(&self) -> Vec<(String, String)> {
        let directory = self.directory.display();
        let mut units = Vec::new();
        for verb in Verb::ALL {
            let (word, command) = (verb.as_str(), verb.command());
            let path = format!(
                "[Unit]\nDescription=Mainstay: {word} %I when asked to\n\n\
                 [Path]\nPathModified={directory}/%i.{word}\n\n\
                 [Install]\nWantedBy=multi-user.target\n"
            );
            // It may have been started too often for systemd's taste.
            let before = match verb {
                Verb::Start => "ExecStartPre=-systemctl reset-failed %I\n",
                Verb::Reload | Verb::Stop => "",
            };
            let service = format!(
                "[Unit]\nDescription=Mainstay: {word} %I\nStartLimitIntervalSec=0\n\n\
                 [Service]\nType=oneshot\n{before}ExecStart=systemctl {command} %I\n"
            );
            units.push((format!("mainstay-{word}@.path"), path));
            units.push((format!("mainstay-{word}@.service"), service));
        }
        units
    }

    /// The path units that have to be enabled for a service of this unit.
    #[must_use]
    pub fn path_units(unit: &str, reload: &ReloadMethod) -> Vec<String> {
        let both = [InstanceNumber::One, InstanceNumber::Two];
        let told: Vec<(Verb, String)> = match reload {
            // Started if it has died of an update that is taken back.
            ReloadMethod::TryReloadOrRestart => {
                [Verb::Reload, Verb::Start].map(|verb| (verb, unit_name(unit))).into()
            }
            ReloadMethod::FlipFlop => {
                let instance = |number| instance_unit(unit, number);
                let of = |verb| both.into_iter().map(move |it| (verb, instance(it)));
                of(Verb::Start).chain(of(Verb::Stop)).collect()
            }
            // Told by the node itself.
            ReloadMethod::Signal(_) | ReloadMethod::Exec(_) => vec![(Verb::Start, unit_name(unit))],
        };
        let name = |(verb, unit): (Verb, String)| {
            format!("mainstay-{}@{}.path", verb.as_str(), escape(&unit))
        };
        told.into_iter().map(name).collect()
    }

    /// Asks by a file, and waits for the end of the helper that does it.
    pub(super) async fn tell(
        &self,
        units: &Units,
        unit: &str,
        verb: Verb,
    ) -> Result<(), UnitError> {
        let word = verb.as_str();
        let escaped = escape(unit);
        let (helper, path) = (
            format!("mainstay-{word}@{escaped}.service"),
            format!("mainstay-{word}@{escaped}.path"),
        );
        // One that is not watched would be waited for in vain.
        if units.facts(&path).await?.active != "active" {
            let why = "is not active: enable it, see 'mainstay rollout units'".to_owned();
            return Err(UnitError::Unit { unit: path, why });
        }
        // One that runs already was asked by somebody else, perhaps for the files of before.
        let before = loop {
            let facts = units.facts(&helper).await?;
            if !facts.is_running() {
                break facts.invocation;
            }
            sleep(AGAIN).await;
        };
        self.touch(&escaped, word)?;
        loop {
            sleep(AGAIN).await;
            let facts = units.facts(&helper).await?;
            match facts.active.as_str() {
                _ if facts.invocation == before => {}
                "inactive" if facts.result == "success" => return Ok(()),
                "inactive" | "failed" => {
                    let why = format!("ended with '{}'", facts.result);
                    return Err(UnitError::Unit { unit: helper, why });
                }
                _ => {}
            }
        }
    }

    fn touch(&self, escaped: &str, word: &str) -> io::Result<()> {
        if !self.directory.is_dir() {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(&self.directory)?;
        }
        let path = self.directory.join(format!("{escaped}.{word}"));
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(path)?;
        file.write_all(b"\n")
    }
}

/// As systemd-escape does: `/` is `-`, and what is not certain to mean itself a code.
fn escape(unit: &str) -> String {
    let mut escaped = String::new();
    for (at, byte) in unit.bytes().enumerate() {
        match byte {
            b'/' => escaped.push('-'),
            b'.' if at == 0 => escaped.push_str("\\x2e"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b':' | b'_' | b'.' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("\\x{byte:02x}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_core::signal::Signal;

    #[test]
    fn a_name_is_escaped_as_systemd_does() {
        assert_eq!(escape("nginx.service"), "nginx.service");
        assert_eq!(escape("web@1.service"), "web\\x401.service");
        assert_eq!(escape("my-app.service"), "my\\x2dapp.service");
    }

    #[test]
    fn each_unit_has_path_units_for_what_it_is_told() {
        let of = SignalFiles::path_units;
        let reload = of("nginx", &ReloadMethod::TryReloadOrRestart);
        let both = ["mainstay-reload@nginx.service.path", "mainstay-start@nginx.service.path"];
        assert_eq!(reload, both, "it may have to be brought up again");
        let hup = ReloadMethod::Signal(Signal::from_number(1).expect("SIGHUP"));
        assert_eq!(of("nginx", &hup), both[1..]);
        let flip_flop = of("web@.service", &ReloadMethod::FlipFlop);
        assert_eq!(flip_flop.len(), 4);
        assert_eq!(flip_flop[3], "mainstay-stop@web\\x402.service.path");
    }

    #[test]
    fn a_reload_never_starts_what_does_not_run() {
        let units = SignalFiles::new(Path::new("/run/mainstay-units")).units();
        assert_eq!(units.len(), 6);
        let reload = &units.iter().find(|(name, _)| name == "mainstay-reload@.service");
        let (_, text) = reload.expect("there");
        assert!(text.contains("ExecStart=systemctl try-reload-or-restart %I"), "{text}");
        let path =
            &units.iter().find(|(name, _)| name == "mainstay-reload@.path").expect("there").1;
        assert!(path.contains("PathModified=/run/mainstay-units/%i.reload"), "{path}");
    }
}
