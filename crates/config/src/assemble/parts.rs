//! The tables of all files: each text parsed, its tables sorted by what they are about, and those
//! that several files have a part of read as one.

use crate::reader::{Outline, Place, Reader, Span};
use std::collections::BTreeMap;
use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue},
};

/// A larger file that is no TOML gets one report: recovery would make one for nearly every byte.
const RECOVERED: usize = 256 << 10;

const TABLES: [&str; 14] = [
    "node",
    "log",
    "jobs",
    "apps",
    "watches",
    "discovery",
    "telemetry",
    "containerpilot",
    "api",
    "fleet",
    "rollout",
    "profiles",
    "templates",
    "services",
];

pub(super) fn tree<'t>(r: &mut Reader<'_>, text: &'t str) -> DeTable<'t> {
    match DeTable::parse(text) {
        Ok(tree) => tree.into_inner(),
        Err(first) if text.len() > RECOVERED => {
            r.syntax(&Outline::of(text), first.span(), first.message());
            DeTable::new()
        }
        Err(_) => {
            let (tree, errors) = DeTable::parse_recoverable(text);
            let outline = Outline::of(text);
            for error in errors {
                r.syntax(&outline, error.span(), error.message());
            }
            tree.into_inner()
        }
    }
}

pub(super) struct Part<'t> {
    pub(super) file: usize,
    /// Its name.
    pub(super) at: Span,
    pub(super) table: &'t DeTable<'t>,
}

/// The tables of all files, sorted by what they are about.
#[derive(Default)]
pub(super) struct Parts<'t> {
    pub(super) node: Vec<Part<'t>>,
    pub(super) log: Vec<Part<'t>>,
    pub(super) jobs: Vec<Part<'t>>,
    pub(super) apps: Vec<Part<'t>>,
    pub(super) telemetry: Vec<Part<'t>>,
    pub(super) containerpilot: Vec<Part<'t>>,
    pub(super) watches: Vec<Part<'t>>,
    pub(super) discovery: Vec<Part<'t>>,
    pub(super) api: Vec<Part<'t>>,
    pub(super) fleet: Vec<Part<'t>>,
    pub(super) rollout: Vec<Part<'t>>,
    pub(super) profiles: Vec<Part<'t>>,
    pub(super) templates: Vec<Part<'t>>,
    pub(super) services: Vec<Part<'t>>,
}

pub(super) fn parts<'t>(r: &mut Reader<'_>, trees: &'t [(usize, DeTable<'t>)]) -> Parts<'t> {
    let mut parts = Parts::default();
    for (file, tree) in trees {
        r.file = *file;
        for (name, value) in tree {
            let into = match name.get_ref().as_ref() {
                "node" => &mut parts.node,
                "log" => &mut parts.log,
                "jobs" => &mut parts.jobs,
                "apps" => &mut parts.apps,
                "telemetry" => &mut parts.telemetry,
                "containerpilot" => &mut parts.containerpilot,
                "watches" => &mut parts.watches,
                "discovery" => &mut parts.discovery,
                "api" => &mut parts.api,
                "fleet" => &mut parts.fleet,
                "rollout" => &mut parts.rollout,
                "profiles" => &mut parts.profiles,
                "templates" => &mut parts.templates,
                "services" => &mut parts.services,
                unknown => {
                    r.unknown(unknown, name.span(), &TABLES, &[]);
                    continue;
                }
            };
            if let Some(table) = table(r, name, value) {
                into.push(Part { file: *file, at: name.span().into(), table });
            }
        }
    }
    parts
}

pub(super) type KeyName<'t> = Spanned<DeString<'t>>;

pub(super) fn table<'t>(
    r: &mut Reader<'_>,
    name: &KeyName<'_>,
    value: &'t Spanned<DeValue<'t>>,
) -> Option<&'t DeTable<'t>> {
    if let DeValue::Table(table) = value.get_ref() {
        return Some(table);
    }
    r.within(name.get_ref(), |r| {
        r.wrong(
            name.span(),
            "expected a table",
            "write its name in brackets on a line of its own, and its keys below",
        )
    })
}

/// Reads a table that several files may have a part of; none may say what another has said.
pub(super) fn merge<'t>(
    r: &mut Reader<'_>,
    name: &str,
    parts: &[Part<'t>],
    mut read: impl FnMut(&mut Reader<'_>, &'t DeTable<'t>),
) {
    let mut said: BTreeMap<&str, Place> = BTreeMap::new();
    for part in parts {
        r.file = part.file;
        r.within(name, |r| {
            for (key, _) in part.table {
                match said.get(key.get_ref().as_ref()) {
                    None => {
                        said.insert(key.get_ref(), r.here(key.span()));
                    }
                    Some(first) => {
                        let message =
                            format!("'{}' is already set at {}", key.get_ref(), r.position(*first));
                        let first = (*first, "first set here");
                        r.wrong_beside::<()>(key.span(), first, message, "remove one of them");
                    }
                }
            }
            read(r, part.table);
        });
    }
}
