//! `[unix_http_server]` and `[inet_http_server]`: where `supervisorctl` finds its server.

use super::text::Scope;
use crate::{
    draft::{Draft, Table, inline, pair, quoted},
    ini::Section,
};
use mainstay_config::Context;
use std::collections::BTreeMap;

/// Modes of a socket that is for its owner alone, as ours is.
const OWN: [&str; 4] = ["0700", "0600", "700", "600"];

/// `[api]`, if there is a socket to be opened.
pub(super) fn api(draft: &mut Draft, sections: &[Section], ctx: &Context) -> Option<Table> {
    let section = sections.iter().find(|section| section.name == "unix_http_server")?;
    let file = section.get("file")?;
    let mut table = Table::new("api", &section.file);
    let scope = Scope {
        program: "",
        group: "",
        number: 0,
        count: 1,
        host: &ctx.host_name,
        env: &ctx.env,
        set: BTreeMap::new(),
    };
    let Ok(path) = scope.written(&file.value) else {
        let message = "[unix_http_server] file: it is not understood, and no such socket is opened";
        draft.note_of(section.file.clone(), file.line, message);
        return None;
    };
    for key in ["chmod", "chown", "username"] {
        let Some(entry) = section.get(key).filter(|it| !OWN.contains(&it.value.trim())) else {
            continue;
        };
        let message = format!("{key}: the socket is for the user who runs the node");
        table.note(entry.line, message);
    }
    table.remark("for supervisorctl");
    table.set("xmlrpc", inline(&[pair("socket", quoted(&path))]));
    Some(table)
}
