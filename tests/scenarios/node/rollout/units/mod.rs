//! Units of a real systemd that are told by a node which is a unit as well.

mod alarmed;
mod flip_flop;
mod gunicorn;
mod told;

use mainstay_tests::{Systemd, put_profile, until};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

const UNIT: &str = include_str!("../../../../../examples/mainstay.service");
/// Systemd is to act on the end of a node, not to start it again.
const ALARMED: &str =
    "[Unit]\nOnFailure=alarm.service\n[Service]\nRestart=no\nEnvironment=RUST_BACKTRACE=1\n";
const ALARM: &str = "[Service]\nType=oneshot\nExecStart=touch /alarm\n";
const CONF: &str = r#"
    [profiles.app]
    source = "file"
    path = "/srv/app.json"
    [templates.conf]
    src = "/srv/conf.j2"
    dst = "/srv/conf"
    profiles = ["app"]
"#;

/// A machine with a node that rolls out `/srv/conf`.
struct Booted(Systemd);

impl Booted {
    /// Boots one with these services in its configuration, and these units. `None`: this machine
    /// cannot.
    fn boot(services: &str, units: &[(&str, &str)]) -> Option<Booted> {
        Booted::boot_with(services, units, &[])
    }

    /// As [`Booted::boot`], with further files.
    fn boot_with(services: &str, units: &[(&str, &str)], more: &[(&str, &str)]) -> Option<Booted> {
        let config = format!("{services}{CONF}");
        let unit = |(name, text): &(&str, &str)| {
            (format!("etc/systemd/system/{name}"), (*text).to_owned())
        };
        let mut files: Vec<(String, String)> = units.iter().map(unit).collect();
        files.extend([
            ("etc/systemd/system/mainstay.service".to_owned(), UNIT.to_owned()),
            ("etc/systemd/system/mainstay.service.d/alarmed.conf".to_owned(), ALARMED.to_owned()),
            ("etc/systemd/system/alarm.service".to_owned(), ALARM.to_owned()),
            ("etc/mainstay/mainstay.toml".to_owned(), config),
            ("srv/conf.j2".to_owned(), "{{ app.word }}\n".to_owned()),
        ]);
        files.extend(more.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        Systemd::boot(&files).inspect_err(|why| eprintln!("skipped: {why}")).ok().map(Booted)
    }

    /// Another version.
    fn put(&self, word: &str) {
        put_profile(&self.path("srv"), &json!({ "word": word }));
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.root().join(below)
    }

    fn read(&self, below: &str) -> String {
        fs::read_to_string(self.path(below)).unwrap_or_default()
    }

    /// The lines of a file, without blanks at their ends.
    fn lines(&self, below: &str) -> Vec<String> {
        self.read(below).lines().map(|line| line.trim().to_owned()).collect()
    }

    fn start_unit(&self, unit: &str) {
        self.0.must(&["systemctl", "start", unit]);
    }

    fn is_active(&self, unit: &str) -> bool {
        self.0.show(unit, "ActiveState") == "active"
    }

    fn rollout(&self) -> Value {
        let output = self.0.run(&["mainstay", "rollout", "status", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Waits until nothing is under way, in this state.
    fn until_state(&self, state: &str) -> Value {
        until("the rollout gets there", || {
            let rollout = self.rollout();
            (rollout["state"] == state && rollout["doing"].is_null()).then_some(rollout)
        })
    }

    /// A version that everybody takes.
    fn applies(&self, word: &str) {
        self.put(word);
        until("it is applied", || {
            let rollout = self.rollout();
            let rests = rollout["state"] == "running" && rollout["doing"].is_null();
            let there = self.read("srv/conf").trim() == word
                && rollout["profiles"][0]["retrieved"] == rollout["profiles"][0]["applied"];
            (rests && there).then_some(())
        });
    }

    /// A version that fails, and why; what was there before is there again.
    fn fails(&self, word: &str, before: &str) -> String {
        let number = |rollout: &Value| rollout["failure"]["number"].as_u64().unwrap_or(0);
        let earlier = number(&self.rollout());
        self.put(word);
        let failure = until("it has failed", || {
            let rollout = self.rollout();
            let rests = rollout["state"] == "pending" && rollout["doing"].is_null();
            let text = rollout["failure"]["failure"].as_str()?.to_owned();
            (rests && number(&rollout) > earlier).then_some(text)
        });
        assert_eq!(self.read("srv/conf").trim(), before, "{failure}");
        failure
    }
}
