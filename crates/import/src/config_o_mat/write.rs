//! The settings as tables of ours, with what is to be said of them.

use super::{
    ConfDirectory,
    settings::{ConfLine, ForeignProfile, ForeignService, ForeignTemplate, RestartMode, Settings},
    template::{self, JinjaTemplate},
};
use crate::{
    Imported, MadeFile,
    draft::{Draft, Names, Table, list, literal},
};
use mainstay_config::{Context, Diagnostic, Errors, Source};
use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

/// As config_o_mat has it.
const REFRESH: u64 = 5;
/// Below that a session of AppConfig is not asked again.
const LEAST_SESSION: u64 = 15;
const RUNTIME: &str = "/run/config_o_mat";

pub(super) struct Writing<'a> {
    settings: &'a Settings,
    directory: &'a ConfDirectory,
    /// Where destinations are.
    runtime: String,
    draft: Draft,
    problems: Vec<Diagnostic>,
    files: Vec<MadeFile>,
    profiles: Vec<(String, String)>,
    templates: BTreeMap<String, String>,
}

impl<'a> Writing<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        directory: &'a ConfDirectory,
        ctx: &Context,
        draft: Draft,
    ) -> Writing<'a> {
        let mut names = Names::default();
        let facts = settings.facter.iter().map(|(name, _)| name);
        let of_profiles = settings.profiles.iter().map(|it| &it.name).chain(facts);
        let profiles = of_profiles.map(|it| (it.clone(), names.take(it, None))).collect();
        let mut names = Names::default();
        let of_templates = settings.templates.iter().map(|it| &it.name);
        let templates = of_templates.map(|it| (it.clone(), names.take(it, None))).collect();
        let runtime = ctx.env.get("RUNTIME_DIRECTORY").filter(|it| it.starts_with('/'));
        let mut writing = Writing {
            settings,
            directory,
            runtime: runtime.map_or(RUNTIME, |it| it.trim_end_matches('/')).to_owned(),
            draft,
            problems: Vec::new(),
            files: Vec::new(),
            profiles,
            templates,
        };
        if runtime.is_none() && !settings.templates.is_empty() {
            let told = format!(
                "RUNTIME_DIRECTORY is not set here: {RUNTIME} stands for what config_o_mat is given by -r"
            );
            writing.draft.note(None, told);
        }
        writing
    }

    pub(super) fn finish(mut self) -> Result<Imported, Errors> {
        for (place, told) in &self.settings.told {
            self.draft.note_of(place.file.clone(), place.line, told.clone());
        }
        self.about_all();
        for profile in &self.settings.profiles {
            let table = self.profile(profile);
            self.draft.push(table);
        }
        if let Some((name, place)) = &self.settings.facter {
            let table = self.facts(name, place);
            self.draft.push(table);
        }
        for foreign in &self.settings.templates {
            if let Some(table) = self.template(foreign) {
                self.draft.push(table);
            }
        }
        let mut names = Names::default();
        for service in &self.settings.services {
            if let Some(table) = self.service(service, &mut names) {
                self.draft.push(table);
            }
        }
        if !self.problems.is_empty() {
            return Err(Errors::of_file(self.problems));
        }
        let mut imported = self.draft.finish();
        imported.files = self.files;
        Ok(imported)
    }

    fn name_of<'b>(&'b self, profile: &'b str) -> &'b str {
        let found = self.profiles.iter().find(|(theirs, _)| theirs == profile);
        found.map_or(profile, |(_, ours)| ours)
    }

    /// Tables that are about the whole.
    fn about_all(&mut self) {
        let level = match self.settings.log_level.as_deref() {
            Some("debug") => Some("debug"),
            Some("warning" | "warn") => Some("warn"),
            Some("error" | "critical" | "alert" | "emergency") => Some("error"),
            // As without.
            Some(_) | None => None,
        };
        if let Some(level) = level {
            let mut log = Table::new("log", &self.directory.name);
            log.set("level", literal(level));
            self.draft.push(log);
        }
        let mut rollout = Table::new("rollout", &self.directory.name);
        let seconds = self.settings.refresh_interval.unwrap_or(REFRESH);
        if seconds < LEAST_SESSION && !self.settings.profiles.is_empty() {
            rollout.remark("AppConfig is asked as often as it allows: every 15 seconds at most");
        }
        rollout.set("refresh_interval", literal(&format!("{seconds}s")));
        for service in self.settings.services.iter().filter(|it| it.mode == RestartMode::None) {
            let name = &service.name;
            rollout.remark(format!("service {name}: its files are written, and nobody is told"));
        }
        let told = |it: &&ForeignService| it.mode != RestartMode::None;
        if self.settings.services.iter().filter(told).count() > 1 {
            let note = "services are told in the order of this file, each after the one before is \
                        confirmed; config_o_mat told the last one first";
            rollout.note(None, note);
        }
        self.draft.push(rollout);
        if !self.settings.templates.is_empty() {
            let note = "templates are in Jinja now: compare what they make, 'mainstay rollout plan' \
                        shows it; a null prints 'null', ERB printed nothing";
            self.draft.note(None, note);
        }
    }

    fn table(&self, header: String, place: &ConfLine) -> Table {
        Table::new(header, &place.file)
    }

    fn profile(&self, profile: &ForeignProfile) -> Table {
        let mut table =
            self.table(format!("profiles.{}", self.name_of(&profile.name)), &profile.at);
        self.renamed(&mut table, &profile.name, self.name_of(&profile.name), &profile.at);
        if let Some(place) = &profile.s3_fallback {
            let note = "s3_fallback: no object in S3 stands in: while AppConfig cannot be reached the \
                        applied version stays in place, over boots as well";
            table.note(place.line, note);
        }
        table.set("source", literal("appconfig"));
        table.set("application", literal(&profile.application));
        table.set("environment", literal(&profile.environment));
        table.set("profile", literal(&profile.profile));
        table.set_if_some("region", self.settings.region.as_deref().map(literal));
        table
    }

    /// Facts are a file here, which somebody has to write.
    fn facts(&self, name: &str, place: &ConfLine) -> Table {
        let path = format!("{}/facter.json", self.runtime);
        let mut table = self.table(format!("profiles.{}", self.name_of(name)), place);
        let note = format!(
            "facter: it is not run here: have 'facter --json' write {path}, with what templates use; \
             facts that change all the time would be a new version each time"
        );
        table.note(place.line, note);
        table.set("source", literal("file"));
        table.set("path", literal(&path));
        table
    }

    fn template(&mut self, foreign: &ForeignTemplate) -> Option<Table> {
        let name = self.templates.get(&foreign.name)?.clone();
        let mut table = self.table(format!("templates.{name}"), &foreign.at);
        let plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        let inside = Path::new(foreign.src.trim_start_matches('/'));
        if !inside.components().all(plain) {
            let told =
                format!("template '{}': its src leaves the directory 'templates'", foreign.name);
            return self.wrong(&foreign.at, told);
        }
        let path = self.directory.templates.join(inside);
        let source = match Source::read(&path) {
            Ok(source) => source,
            Err(errors) => {
                self.problems.extend(errors.iter().cloned());
                return None;
            }
        };
        let JinjaTemplate { text, profiles, left } =
            template::translate(&source.text, &self.profiles);
        let made = PathBuf::from("templates").join(inside);
        let made = PathBuf::from(format!("{}.j2", made.display()));
        table.set("src", literal(&made.display().to_string()));
        let dst = foreign.dst.trim_start_matches('/');
        table.set("dst", literal(&format!("{}/{dst}", self.runtime)));
        if !profiles.is_empty() {
            table.set("profiles", list(profiles.iter().map(|it| literal(it))));
        }
        self.renamed(&mut table, &foreign.name, &name, &foreign.at);
        // One source may be that of several.
        if !self.files.iter().any(|it| it.path == made) {
            self.files.push(MadeFile { path: made, text });
            for (line, why) in left {
                self.draft.note_of(source.name.clone(), line, why);
            }
        }
        Some(table)
    }

    fn service(&mut self, service: &ForeignService, names: &mut Names) -> Option<Table> {
        let name = names.take(&service.name, None);
        let mut table = self.table(format!("services.{name}"), &service.at);
        let line = service.at.line;
        self.renamed(&mut table, &service.name, &name, &service.at);
        let unit = service.unit.trim_end_matches('@');
        let templates: Vec<String> = service
            .templates
            .iter()
            .filter_map(|it| self.templates.get(it))
            .map(|it| literal(it))
            .collect();
        match service.mode {
            RestartMode::Restart => {
                let note = format!(
                    "restart: {unit}.service is reloaded if it can be, and stays stopped if it does \
                     not run; where it reads LoadCredential=, which only a start does, write reload = \
                     {{ exec = \"systemctl try-restart {unit}.service\" }}"
                );
                table.note(line, note);
                table.set("unit", literal(&format!("{unit}.service")));
            }
            RestartMode::FlipFlop => {
                let note = "flip_flop: if neither instance runs none is started";
                table.note(line, note);
                table.set("unit", literal(&format!("{unit}@.service")));
                table.set("reload", literal("flip-flop"));
            }
            RestartMode::RestartAll => {
                let note =
                    "restart_all: systemctl is run by the node itself, which needs the right to";
                table.note(line, note);
                let exec = format!("{unit}@*.service");
                let exec = ["systemctl", "try-restart", &exec].map(literal);
                table.set("reload", format!("{{ exec = {} }}", list(exec)));
            }
            // Its files are written, and nobody is told.
            RestartMode::None => return None,
        }
        table.set("templates", list(templates));
        Some(table)
    }

    /// Names of ours are shorter than a key of YAML may be, and some mean something.
    fn renamed(&self, table: &mut Table, theirs: &str, ours: &str, place: &ConfLine) {
        if theirs != ours {
            table.note(place.line, format!("'{theirs}' cannot be a name here: it is {ours}"));
        }
    }

    fn wrong<T>(&mut self, place: &ConfLine, message: String) -> Option<T> {
        let at = format!("{}:{}", place.file, place.line);
        self.problems.push(Diagnostic::error(message).file(at).help("correct it there"));
        None
    }
}
