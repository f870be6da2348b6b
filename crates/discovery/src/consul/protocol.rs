//! The JSON, paths and words of Consul's HTTP interface, as far as they are needed.

use super::client::Answer;
use mainstay_core::discovery::{Instance, Query, Registration, Standing};
use mainstay_net::{http::StatusCode, percent};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt::Write, time::Duration};

/// So much of a note is passed on.
const NOTE: usize = 1 << 10;
/// So much of what the server says about a refusal is shown.
const REFUSAL: usize = 300;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Registered<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
    name: &'a str,
    address: &'a str,
    port: u16,
    tags: &'a [String],
    meta: &'a BTreeMap<String, String>,
    enable_tag_override: bool,
    check: Check,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Check {
    #[serde(rename = "CheckID")]
    id: String,
    name: String,
    #[serde(rename = "TTL")]
    ttl: String,
    notes: &'static str,
    status: Standing,
    #[serde(skip_serializing_if = "Option::is_none")]
    deregister_critical_service_after: Option<String>,
}

impl<'a> Registered<'a> {
    pub(super) fn new(registration: &'a Registration, standing: Standing) -> Registered<'a> {
        let Registration {
            id,
            service,
            address,
            port,
            tags,
            meta,
            ttl,
            heartbeat: _,
            deregister_critical_after,
            enable_tag_override,
        } = registration;
        Registered {
            id,
            name: service,
            address,
            port: *port,
            tags,
            meta,
            enable_tag_override: *enable_tag_override,
            check: Check {
                id: format!("service:{id}"),
                name: format!("Service '{service}' check"),
                ttl: milliseconds(*ttl),
                notes: "told by mainstay",
                status: standing,
                deregister_critical_service_after: deregister_critical_after.map(milliseconds),
            },
        }
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

/// One element of an answer about the health of a service.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct HealthEntry {
    node: NodeEntry,
    service: ServiceEntry,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NodeEntry {
    node: String,
    address: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ServiceEntry {
    #[serde(rename = "ID")]
    id: String,
    service: String,
    /// Empty: that of the node.
    #[serde(default)]
    address: String,
    /// The server takes any number.
    port: i64,
    /// The server writes nothing for none.
    #[serde(default)]
    tags: Option<Vec<String>>,
    #[serde(default)]
    meta: Option<BTreeMap<String, String>>,
}

impl HealthEntry {
    /// `None`: its port is none, so nobody can reach it. The others must not suffer from that.
    pub(super) fn instance(self) -> Option<Instance> {
        let HealthEntry { node, service } = self;
        Some(Instance {
            port: u16::try_from(service.port).ok()?,
            id: service.id,
            name: service.service,
            address: if service.address.is_empty() { node.address } else { service.address },
            tags: service.tags.unwrap_or_default(),
            meta: service.meta.unwrap_or_default(),
            node: node.node,
        })
    }
}

/// The question for the passing instances; with an index, for what comes after it.
pub(super) fn health(query: &Query, index: Option<u64>, wait: Duration) -> String {
    let mut path = format!("/v1/health/service/{}?passing=1", percent::segment(&query.service));
    for (key, value) in [("tag", &query.tag), ("dc", &query.dc)] {
        if let Some(value) = value {
            let _ = write!(path, "&{key}={}", percent::segment(value));
        }
    }
    if let Some(index) = index {
        let _ = write!(path, "&index={index}&wait={}", milliseconds(wait));
    }
    path
}

/// The beginning of a note.
pub(super) fn short(note: &str) -> &str {
    beginning(note, NOTE)
}

fn beginning(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// What a refusal means to a person.
pub(super) fn refused(answer: &Answer) -> String {
    let text = answer.text();
    // It ends up on terminals.
    let dark = |c: char| c.is_whitespace() || c.is_control();
    let said: Vec<&str> =
        beginning(&text, REFUSAL).split(dark).filter(|part| !part.is_empty()).collect();
    let pause = if said.is_empty() { "" } else { ": " };
    let hint = match answer.status {
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => {
            "; give a token that may do this with discovery.token"
        }
        _ => "",
    };
    format!("the server answers {}{pause}{}{hint}", answer.status, said.join(" "))
}

#[derive(Debug, Deserialize)]
struct KnownCheck {
    /// Agents before 1.7 do not say it.
    #[serde(default, rename = "Type")]
    kind: String,
}

/// Whether the list of an agent's checks is without that of a service, or has another one there
/// that cannot be told anything.
pub(super) fn lacks_check(list: &[u8], service: &str) -> bool {
    let Ok(checks) = serde_json::from_slice::<BTreeMap<String, KnownCheck>>(list) else {
        return false;
    };
    let check = checks.get(&format!("service:{service}"));
    check.is_none_or(|check| !["", "ttl"].contains(&check.kind.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_is_not_listed_or_cannot_be_told_anything_is_missing() {
        let list = br#"{"service:a":{"Type":"ttl"},"service:b":{"Type":"http"},"service:c":{}}"#;
        assert_eq!(
            ["a", "b", "c", "d"].map(|it| lacks_check(list, it)),
            [false, true, false, true]
        );
        assert!(!lacks_check(b"No cluster leader", "a"), "that says nothing");
    }

    #[test]
    fn a_question_carries_tag_data_centre_and_index() {
        let query = Query {
            service: "a b/c".to_owned(),
            tag: Some("x&y".to_owned()),
            dc: Some("west".to_owned()),
            interval: Duration::from_secs(5),
            debounce: Duration::from_millis(100),
        };
        assert_eq!(
            health(&query, Some(7), Duration::from_millis(1500)),
            "/v1/health/service/a%20b%2Fc?passing=1&tag=x%26y&dc=west&index=7&wait=1500ms"
        );
        let plain = Query { tag: None, dc: None, service: "web".to_owned(), ..query };
        assert_eq!(health(&plain, None, Duration::ZERO), "/v1/health/service/web?passing=1");
    }

    #[test]
    fn an_entry_without_an_address_has_that_of_its_node() {
        let entry = |address: &str| {
            let text = format!(
                r#"{{"Node":{{"Node":"n","Address":"10.0.0.1","Meta":null}},"Checks":[],
                    "Service":{{"ID":"w-1","Service":"w","Address":"{address}","Port":80,
                                "Tags":null,"Meta":null,"Weights":{{}}}}}}"#
            );
            serde_json::from_str::<HealthEntry>(&text)
                .expect("an entry")
                .instance()
                .expect("a port")
        };
        assert_eq!(entry("").address, "10.0.0.1");
        assert_eq!(entry("10.0.0.2").address, "10.0.0.2");
    }

    #[test]
    fn a_long_note_is_cut_between_characters() {
        let note = "ä".repeat(1000);
        assert_eq!(short(&note).len(), NOTE);
        assert_eq!(short("fine"), "fine");
        assert_eq!(short(&format!("x{note}")).len(), NOTE - 1);
    }

    #[test]
    fn what_a_server_says_cannot_steer_a_terminal() {
        let body = b"no\x1b[31m\x07 way\r\n".to_vec().into();
        let answer = Answer { status: StatusCode::BAD_REQUEST, index: None, body };
        assert_eq!(refused(&answer), "the server answers 400 Bad Request: no [31m way");
    }
}
