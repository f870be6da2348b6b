//! The options of Supvisors, and the `[fleet]` that they become.
//!
//! Of a value that Supvisors would not take it takes its default, and so does this; but it is told.

use super::nodes::Nodes;
use crate::{
    draft::{Draft, Table, list, quoted},
    ini::{Entry, Section},
    supervisord::{
        include::{Sections, glob},
        problem,
        text::{Scope, truth},
    },
};
use mainstay_config::Context;
use std::{collections::BTreeMap, path::PathBuf};

/// Which Supvisors wrote it: they stop in opposite orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// Up to 0.8: `[supvisors]`. Lowest `stop_sequence` first, 0 if there is none.
    Old,
    /// `[rpcinterface:supvisors]`. Greatest first, as `start_sequence` if there is none.
    Today,
}

/// `[fleet]` in the making, and what else is said there.
pub(super) struct Options {
    pub(super) generation: Generation,
    pub(super) nodes: Nodes,
    pub(super) rules_files: Vec<PathBuf>,
    /// Of `[fleet]`, beside its nodes.
    keys: Vec<(&'static str, String)>,
    pub(super) file: String,
    /// Of the list of nodes.
    line: usize,
    host: String,
}

pub(super) const STRATEGIES: [(&str, &str); 6] = [
    ("CONFIG", "config"),
    ("LESS_LOADED", "less-loaded"),
    ("MOST_LOADED", "most-loaded"),
    ("LOCAL", "local"),
    ("LESS_LOADED_NODE", "less-loaded-node"),
    ("MOST_LOADED_NODE", "most-loaded-node"),
];
const CONCILIATIONS: [(&str, &str); 6] = [
    ("SENICIDE", "senicide"),
    ("INFANTICIDE", "infanticide"),
    ("USER", "user"),
    ("STOP", "stop"),
    ("RESTART", "restart"),
    ("RUNNING_FAILURE", "running-failure"),
];

/// The word that we have for one of theirs, or for its number.
pub(super) fn ours(words: &[(&str, &'static str)], text: &str) -> Option<&'static str> {
    let upper = text.trim().to_ascii_uppercase();
    words.iter().find(|(theirs, _)| *theirs == upper).map(|(_, ours)| *ours)
}

impl Options {
    pub(super) fn read(
        draft: &mut Draft,
        sections: &mut Sections,
        ctx: &Context,
    ) -> Option<Options> {
        let named = |name: &str| sections.all.iter().find(|section| section.name == name);
        let (section, generation) = match (named("supvisors"), named("rpcinterface:supvisors")) {
            (Some(section), _) => (section.clone(), Generation::Old),
            (None, Some(section)) => (section.clone(), Generation::Today),
            (None, None) => return None,
        };
        let port = named("inet_http_server").and_then(|server| server.get("port"));
        let port = port.and_then(|entry| entry.value.rsplit(':').next()?.trim().parse().ok());
        let mut options = Options {
            generation,
            nodes: Nodes::default(),
            rules_files: Vec::new(),
            keys: Vec::new(),
            file: section.file.clone(),
            line: section.line,
            host: ctx.host_name.clone(),
        };
        let mut reading = Reading { draft, ctx, section: &section, problems: Vec::new() };
        options.list(&mut reading, port);
        for entry in &section.entries {
            options.entry(&mut reading, entry);
        }
        sections.problems.append(&mut reading.problems);
        Some(options)
    }

    fn list(&mut self, reading: &mut Reading<'_, '_>, port: Option<u16>) {
        let section = reading.section;
        if let Some(entry) = LISTS.iter().find_map(|key| section.get(key))
            && let Some(text) = reading.now(entry)
        {
            self.line = entry.line;
            match Nodes::read(&text) {
                Ok(nodes) => self.nodes = nodes,
                Err(why) => reading.wrong(entry, format!("{}: {why}", entry.key)),
            }
            self.nodes.find_me(&self.host, port);
        }
        let tags = section.get("stereotypes").and_then(|entry| reading.now(entry));
        self.nodes.stereotypes = tags.map(|tags| comma_list(&tags)).unwrap_or_default();
    }

    fn entry(&mut self, reading: &mut Reading<'_, '_>, entry: &Entry) {
        let Some(text) = reading.now(entry) else { return };
        let text = text.trim();
        match entry.key.as_str() {
            key if LISTS.contains(&key) || key == "supervisor.rpcinterface_factory" => {}
            "stereotypes" => reading.note(
                entry,
                "a tag stands for this node alone here: name the others that have it as well",
            ),
            "core_identifiers" | "force_synchro_if" => self.core(reading, entry, text),
            "synchro_options" => synchronised(reading, entry, text),
            "synchro_timeout" => match text.parse::<u32>() {
                Ok(seconds @ 15..=1200) => {
                    self.keys.push(("sync_timeout", quoted(&format!("{seconds}s"))));
                }
                Ok(_) | Err(_) => reading.unfit(entry, text),
            },
            "auto_fence" => match truth(text) {
                Some(fence) => self.keys.push(("auto_fence", fence.to_string())),
                None => reading.unfit(entry, text),
            },
            "starting_strategy" => self.word(reading, entry, text, "strategy", &STRATEGIES),
            "conciliation_strategy" => {
                self.word(reading, entry, text, "conciliation", &CONCILIATIONS);
            }
            "supvisors_failure_strategy" if text.eq_ignore_ascii_case("CONTINUE") => {}
            "rules_files" | "rules_file" => self.rules_files(reading, entry, text),
            key => reading.note(entry, counterpart(key)),
        }
    }

    fn word(
        &mut self,
        reading: &mut Reading<'_, '_>,
        entry: &Entry,
        text: &str,
        key: &'static str,
        known: &[(&str, &'static str)],
    ) {
        match ours(known, text) {
            Some(word) => self.keys.push((key, quoted(word))),
            None => reading.unfit(entry, text),
        }
    }

    fn core(&mut self, reading: &mut Reading<'_, '_>, entry: &Entry, text: &str) {
        let mut core: Vec<String> = Vec::new();
        for word in comma_list(text) {
            let tagged = self.nodes.me.filter(|_| self.nodes.stereotypes.contains(&word));
            match self.nodes.named(&word).or(tagged).and_then(|at| self.nodes.name(at)) {
                Some(name) if core.contains(&quoted(name)) => {}
                Some(name) => core.push(quoted(name)),
                None => reading.note(entry, format!("'{word}' is not in the list of nodes")),
            }
        }
        if !core.is_empty() {
            self.keys.push(("core", list(core)));
        }
    }

    fn rules_files(&mut self, reading: &mut Reading<'_, '_>, entry: &Entry, text: &str) {
        let file = PathBuf::from(&reading.section.file);
        let here = std::path::absolute(&file).unwrap_or(file);
        let here = here.parent().map(PathBuf::from).unwrap_or_default();
        for pattern in text.split_whitespace() {
            let found = glob(&here.join(pattern));
            if found.is_empty() {
                let message = format!(
                    "'{pattern}' is not here: no application is known to the rules; name the file \
                     behind this one"
                );
                reading.note(entry, message);
            }
            for path in found {
                if !self.rules_files.contains(&path) {
                    self.rules_files.push(path);
                }
            }
        }
    }

    /// `[fleet]`, if there is more than one node.
    pub(super) fn fleet(&self) -> Option<Table> {
        if !self.nodes.is_fleet() {
            return None;
        }
        let mut table = Table::new("fleet", &self.file);
        table.note(
            self.line,
            "the nodes reach each other at a port of their own, UDP and TCP, and prove who they are \
             by a key: make one with 'mainstay fleet key --out /etc/mainstay/fleet.key', and give \
             every node a copy",
        );
        for node in &self.nodes.all {
            if let Some(theirs) = node.renamed() {
                table.note(self.line, format!("'{theirs}' is called '{}' here", node.name));
            }
        }
        table.set("nodes", list(self.nodes.all.iter().map(|node| node.written())));
        let me = self.nodes.all.get(self.nodes.me.unwrap_or_default());
        table.set_if_some("listen", me.and_then(|me| me.listen()));
        for (key, value) in &self.keys {
            table.set_over(key, value.clone());
        }
        table.set("key_file", quoted("${MAINSTAY_FLEET_KEY:-/etc/mainstay/fleet.key}"));
        Some(table)
    }

    /// The name of this node, where the others know it by another than that of its host.
    pub(super) fn node(&self, table: &mut Table) {
        if !self.nodes.is_fleet() {
            return;
        }
        let at = self.nodes.me.unwrap_or_default();
        let Some(name) = self.nodes.name(at) else { return };
        if self.nodes.me.is_none() {
            let message = format!(
                "this host, '{}', is not in the list of nodes: the file is that of '{name}'",
                self.host
            );
            table.note(self.line, message);
        }
        if name != self.host {
            table.set("name", quoted(name));
        }
    }
}

const LISTS: [&str; 3] = ["supvisors_list", "node_list", "address_list"];

fn comma_list(text: &str) -> Vec<String> {
    let entries = text.split([',', '\n']).map(str::trim).filter(|word| !word.is_empty());
    entries.map(str::to_owned).collect()
}

/// The nodes are waited for until all are there, those of the core are, or the time is over: other
/// ends of the synchronisation are not there.
fn synchronised(reading: &mut Reading<'_, '_>, entry: &Entry, text: &str) {
    let options: Vec<String> =
        comma_list(text).into_iter().map(|it| it.to_ascii_uppercase()).collect();
    for option in &options {
        let message = match option.as_str() {
            "STRICT" | "CORE" | "TIMEOUT" => continue,
            "LIST" => "LIST: there are no nodes beside those of the list".to_owned(),
            "USER" => {
                "USER: nobody ends the synchronisation by hand: core or the timeout does".to_owned()
            }
            other => format!("'{other}' is not known"),
        };
        reading.note(entry, message);
    }
    if !options.iter().any(|it| it == "TIMEOUT") {
        let message = "without TIMEOUT it waits for ever; here it begins after sync_timeout";
        reading.note(entry, message);
    }
    if !options.iter().any(|it| it == "STRICT" || it == "LIST") {
        reading.note(entry, "without STRICT; here it begins as well when all nodes are there");
    }
}

/// What an option comes to that no key stands for.
fn counterpart(key: &str) -> &'static str {
    match key {
        "inactivity_ticks" => "a lost node is seen within two ticks of a second: [fleet] tick",
        "supvisors_failure_strategy" => {
            "nodes that are lost later do not end the fleet: it goes on with the others"
        }
        "multicast_group" | "multicast_interface" | "multicast_ttl" => {
            "nodes are not found by multicast: list them in [fleet] nodes, or name some in join"
        }
        "event_link" | "event_port" => {
            "events are at GET /v1/events, and mainstay events --fleet --json prints them"
        }
        "internal_port" => "the nodes talk at the port in [fleet] nodes",
        "disabilities_file" => {
            "what is disabled there is not read: mainstay disable NAME, which is remembered"
        }
        "stats_enabled"
        | "stats_collecting_period"
        | "stats_periods"
        | "stats_histo"
        | "stats_irix_mode" => "statistics are metrics: [telemetry] listen",
        "tail_limit" | "tailf_limit" | "software_name" | "software_icon" | "css_files" => {
            "there is no web page"
        }
        "logfile" | "logfile_maxbytes" | "logfile_backups" | "loglevel" => {
            "the log of the node is its own: [log] level, mainstay logs mainstay"
        }
        _ => "it is not known",
    }
}

/// One section, read for its values.
struct Reading<'d, 's> {
    draft: &'d mut Draft,
    ctx: &'s Context,
    section: &'s Section,
    problems: Vec<mainstay_config::Diagnostic>,
}

impl Reading<'_, '_> {
    /// What a value comes to now.
    fn now(&mut self, entry: &Entry) -> Option<String> {
        let scope = Scope {
            program: "",
            group: "",
            number: 0,
            count: 1,
            host: &self.ctx.host_name,
            env: &self.ctx.env,
            set: BTreeMap::new(),
        };
        match scope.now(&entry.value) {
            Ok(text) => Some(text),
            Err(why) => {
                self.wrong(entry, format!("{}: {why}", entry.key));
                None
            }
        }
    }

    fn note(&mut self, entry: &Entry, message: impl AsRef<str>) {
        let message = format!("{}: {}", entry.key, message.as_ref());
        self.draft.note_of(self.section.file.clone(), entry.line, message);
    }

    fn unfit(&mut self, entry: &Entry, text: &str) {
        self.note(entry, format!("'{text}' is passed over, as by Supvisors: its default counts"));
    }

    fn wrong(&mut self, entry: &Entry, message: String) {
        // A value that comes twice is wrong once.
        let found = problem(&self.section.file, entry.line, message);
        if !self.problems.contains(&found) {
            self.problems.push(found);
        }
    }
}
