//! What a test rolls out: a profile in a file, templates beside it, and whoever is told of them.

use crate::{Node, Scratch, Setup};
use serde_json::Value;
use std::{fmt::Write, fs, path::Path};

/// A configuration in the making, with its files: the profile `app` in `app.json`.
#[derive(Debug)]
pub struct RolledOut {
    scratch: Scratch,
    config: String,
}

impl Default for RolledOut {
    fn default() -> RolledOut {
        RolledOut::new()
    }
}

impl RolledOut {
    #[must_use]
    pub fn new() -> RolledOut {
        RolledOut::of_profile("source = \"file\"\npath = \"app.json\"")
    }

    /// With a profile `app` that comes from elsewhere.
    #[must_use]
    pub fn of_profile(keys: &str) -> RolledOut {
        let scratch = Scratch::new();
        fs::create_dir(scratch.path().join("out")).expect("a directory of our own");
        RolledOut { scratch, config: format!("[profiles.app]\n{keys}\n") }
    }

    /// A template that makes `out/FILE` of this text; `keys` are further lines of its table.
    #[must_use]
    pub fn template(mut self, name: &str, file: &str, text: &str, keys: &str) -> RolledOut {
        let source = self.path().join(format!("{file}.j2"));
        fs::write(source, text).expect("a file of our own");
        let table = format!(
            "[templates.{name}]\nsrc = \"{file}.j2\"\ndst = \"out/{file}\"\nprofiles = [\"app\"]\n"
        );
        writeln!(self.config, "{table}{keys}").expect("into memory");
        self
    }

    /// More of the configuration.
    #[must_use]
    pub fn with(mut self, tables: &str) -> RolledOut {
        writeln!(self.config, "{tables}").expect("into memory");
        self
    }

    /// The profile as it is at first.
    #[must_use]
    pub fn serving(self, profile: &Value) -> RolledOut {
        put_profile(self.path(), profile);
        self
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.scratch.path()
    }

    #[must_use]
    pub fn config(&self) -> &str {
        &self.config
    }

    /// Starts a node with it, and does not wait.
    #[must_use]
    pub fn launch(self) -> Node {
        self.launch_as(|setup| setup)
    }

    /// As [`RolledOut::launch`], with more that it is started with.
    #[must_use]
    pub fn launch_as(self, more: impl FnOnce(Setup) -> Setup) -> Node {
        more(Setup::config(self.config)).launch_in(self.scratch)
    }
}

/// Another version of the profile below a directory, in one piece.
pub fn put_profile(dir: &Path, profile: &Value) {
    let (new, place) = (dir.join("app.json.new"), dir.join("app.json"));
    fs::write(&new, profile.to_string()).expect("written");
    fs::rename(new, place).expect("renamed");
}
