//! `watches`: services that are asked for in Consul.

use super::{
    json5::{Json5Node, Json5Value},
    reader::{Case, Reader, Span},
};
use crate::draft::{Names, Table, quoted};
use std::time::Duration;

const KEYS: &[&str] = &["name", "interval", "tag", "dc"];

pub(super) struct Watch {
    /// As it is written: the service, and the source of events after `watch.`.
    pub(super) name: String,
    /// Its name here.
    pub(super) own: String,
    at: Span,
    interval: Duration,
    tag: Option<String>,
    dc: Option<String>,
}

/// All of them; those with a mistake are left out.
pub(super) fn read(r: &mut Reader<'_>, node: Option<&Json5Node>) -> Vec<Watch> {
    let mut watches: Vec<Watch> = Vec::new();
    let mut names = Names::default();
    for node in items(r, node, "watches") {
        watches.extend(Watch::read(r, node, &mut names));
    }
    watches
}

/// The items of a list; those that are null do not count.
pub(super) fn items<'n>(
    r: &mut Reader<'_>,
    node: Option<&'n Json5Node>,
    what: &str,
) -> impl Iterator<Item = &'n Json5Node> + use<'n> {
    let all: &[Json5Node] = match node.map(|node| &node.value) {
        None => &[],
        Some(Json5Value::List(all)) => all,
        Some(_) => {
            let span = node.map(|node| node.span.clone()).unwrap_or_default();
            let message = format!("{what} is no list; 3.8.0 took it as if it were not there");
            r.wrong::<()>(&span, message, "write [ { … }, { … } ]");
            &[]
        }
    };
    all.iter().filter(|node| node.value != Json5Value::Null)
}

/// What Consul may be told as the name of a service.
pub(super) fn is_service(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_lowercase())
        && name.len() >= 2
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '-')
}

pub(super) const SERVICE_HELP: &str =
    "use letters, digits and '-', at least two, the first a lower-case letter";

impl Watch {
    fn read(r: &mut Reader<'_>, node: &Json5Node, names: &mut Names) -> Option<Watch> {
        let fields = r.fields(node, "watches", KEYS, Case::Any)?;
        let Some(name_node) = fields.filled("name") else {
            return r.wrong(&fields.span, "a watch has no name", "add name: \"SERVICE\"");
        };
        let name = r.text(name_node, "the name of a watch")?;
        if !is_service(&name) {
            let message = format!("'{name}' is not a name for a service");
            r.wrong::<()>(&name_node.span, message, SERVICE_HELP);
        }
        let what = format!("watch '{name}'");
        let interval = match fields.get("interval") {
            Some(node) => r.seconds(node, &format!("interval of {what}")),
            None => r.wrong(&fields.span, format!("{what} has no interval"), "add interval: 10"),
        };
        let mut text = |key: &str| match fields.filled(key) {
            Some(node) => r.text(node, &format!("{key} of {what}")).map(Some),
            None => Some(None),
        };
        let (tag, dc) = (text("tag"), text("dc"));
        let own = names.take(&name, None);
        let at = name_node.span.clone();
        Some(Watch { name, own, at, interval: interval?, tag: tag?, dc: dc? })
    }

    pub(super) fn place(&self) -> &Span {
        &self.at
    }

    pub(super) fn table(&self, r: &Reader<'_>) -> Table {
        let header = format!("watches.{}", self.own);
        let mut table = Table::new(header, r.file(&self.at)).at(self.at.clone());
        if self.own != self.name {
            let message = format!(
                "there is a watch '{}' already: this one is '{}' here, and what waits for \
                 'watch.{0}' waits for the first; 3.8.0 mixed them up",
                self.name, self.own
            );
            table.note(r.line(&self.at), message);
            table.set("service", quoted(&self.name));
        }
        for (key, value) in [("tag", &self.tag), ("dc", &self.dc)] {
            if let Some(value) = value {
                table.set(key, crate::draft::literal(value));
            }
        }
        table.set("interval", super::duration::written(self.interval));
        table
    }
}
