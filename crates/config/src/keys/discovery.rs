//! `[discovery]`, `[watches.NAME]`, and `advertise` of a job: what others are told, and what is
//! asked of them.

use crate::{
    keys::{Kind, Reload::Live, Table, key},
    notation::address::is_host,
    reader::{Reader, Span, Value},
};
use mainstay_core::{
    discovery::{Backend, Consul, FileCatalogue, Tls},
    interface::InterfaceSpec,
    name::Name,
    plan::{Advertise, WatchPlan, Watched},
    text::Secret,
};
use std::{path::PathBuf, time::Duration};
use toml::de::DeValue;

/// `[discovery]` as it is written.
#[derive(Default)]
pub(crate) struct DiscoveryKeys {
    engine: Option<(BackendKind, Span)>,
    address: Option<(String, Span)>,
    scheme: Option<(Scheme, Span)>,
    token: Option<(String, Span)>,
    tls: Option<(Tls, Span)>,
    dir: Option<(PathBuf, Span)>,
}

#[derive(Clone, Copy, PartialEq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum BackendKind {
    Consul,
    File,
}

#[derive(Clone, Copy, PartialEq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scheme {
    Http,
    Https,
}

pub(crate) static DISCOVERY: Table<DiscoveryKeys> = Table {
    keys: &[
        key(
            "engine",
            Kind::OneOf(&["consul", "file"]),
            "",
            Live,
            "Where services are announced and looked up: Consul, or files in a directory. Required.",
            |it, v, r| r.one_of(v).map(|engine| it.engine = Some((engine, v.span))),
        ),
        key(
            "address",
            Kind::Text,
            "\"127.0.0.1:8500\"",
            Live,
            "Of the Consul agent: host:port, or unix:/path.",
            |it, v, r| address(v, r).map(|address| it.address = Some((address, v.span))),
        ),
        key(
            "scheme",
            Kind::OneOf(&["http", "https"]),
            "\"http\"",
            Live,
            "How Consul is spoken to; default: https if tls is given.",
            |it, v, r| r.one_of(v).map(|scheme| it.scheme = Some((scheme, v.span))),
        ),
        key(
            "token",
            Kind::Text,
            "",
            Live,
            "Consul's ACL token; a secret: ${file:/path} or ${VAR}.",
            |it, v, r| {
                let (token, _) = r.secret(|r| r.filled(v))?;
                if !token.bytes().all(|b| b.is_ascii_graphic()) {
                    // It is not shown.
                    let help = "keep it on one line, without blanks";
                    return r.wrong(v.span, "not a token", help);
                }
                it.token = Some((token, v.span));
                Some(())
            },
        ),
        key("tls", Kind::Table, "", Live, "How Consul is trusted over https.", |it, v, r| {
            let mut tls = Tls::default();
            r.nested(v, &TLS, &mut tls)?;
            it.tls = Some((tls, v.span));
            Some(())
        }),
        key(
            "dir",
            Kind::Text,
            "",
            Live,
            "The directory of the file engine; all nodes that use it see each other. Relative to the \
             file that says so.",
            |it, v, r| {
                let dir = r.directory().join(r.filled(v)?);
                it.dir = Some((dir, v.span));
                Some(())
            },
        ),
    ],
    later: &[],
    refused: &[],
};

pub(crate) static TLS: Table<Tls> = Table {
    keys: &[
        key(
            "ca_file",
            Kind::Text,
            "",
            Live,
            "Certificates (PEM) that are trusted instead of the system's.",
            |it, v, r| path(v, r).map(|path| it.ca_file = Some(path)),
        ),
        key("ca_path", Kind::Text, "", Live, "A directory of such certificates.", |it, v, r| {
            path(v, r).map(|path| it.ca_path = Some(path))
        }),
        key("cert", Kind::Text, "", Live, "Our own certificate (PEM).", |it, v, r| {
            path(v, r).map(|path| it.cert = Some(path))
        }),
        key("key", Kind::Text, "", Live, "Its private key (PEM).", |it, v, r| {
            path(v, r).map(|path| it.key = Some(path))
        }),
        key(
            "server_name",
            Kind::Text,
            "",
            Live,
            "The name in the server's certificate; default: the host of the address.",
            |it, v, r| {
                let name = r.filled(v)?;
                if !is_host(&name) {
                    return r.wrong(v.span, format!("'{name}' is not a host"), "write a host name");
                }
                it.server_name = Some(name);
                Some(())
            },
        ),
        key(
            "verify",
            Kind::Bool,
            "true",
            Live,
            "false: trust any certificate, which is no protection.",
            |it, v, r| r.boolean(v).map(|verify| it.verify = verify),
        ),
    ],
    later: &[],
    refused: &[],
};

pub(crate) static ADVERTISE: Table<Advertise> = Table {
    keys: &[
        key(
            "port",
            Kind::Integer,
            "",
            Live,
            "The port that is announced. Required.",
            |it, v, r| {
                let port = r.integer(v, 1..=65535)?;
                it.port = u16::try_from(port).ok()?;
                Some(())
            },
        ),
        key(
            "service",
            Kind::Text,
            "",
            Live,
            "Its name in the catalogue; default: the name of the job, without the instance.",
            |it, v, r| label(v, r).map(|service| it.service = service),
        ),
        key(
            "id",
            Kind::Text,
            "",
            Live,
            "What tells it from others of the same name; default: the job and the node.",
            |it, v, r| label(v, r).map(|id| it.id = Some(id)),
        ),
        key(
            "ttl",
            Kind::Duration,
            "\"25s\"",
            Live,
            "Without a heartbeat for so long it counts as failing.",
            |it, v, r| r.period(v).map(|ttl| it.ttl = ttl),
        ),
        key(
            "heartbeat",
            Kind::Duration,
            "\"10s\"",
            Live,
            "How often it is said to be well, while it is.",
            |it, v, r| r.period(v).map(|heartbeat| it.heartbeat = heartbeat),
        ),
        key("tags", Kind::Texts, "[]", Live, "Tags in the catalogue.", |it, v, r| {
            texts(v, r).map(|tags| it.tags = tags)
        }),
        key("meta", Kind::Map, "{}", Live, "Values in the catalogue, by name.", |it, v, r| {
            let pairs = r.map(v, |r, name, _, v| Some((name.to_owned(), r.scalar(v)?)))?;
            it.meta = pairs.into_iter().collect();
            Some(())
        }),
        key(
            "interfaces",
            Kind::Texts,
            "[\"eth0:inet\", \"inet\"]",
            Live,
            "Which address is announced, the first that the host has: eth0, eth0:inet6, eth0[1], \
             10.0.0.0/8, inet, inet6, static:IP.",
            |it, v, r| interfaces(v, r).map(|all| it.interfaces = all),
        ),
        key(
            "initial_status",
            Kind::OneOf(&["passing", "warning", "critical"]),
            "",
            Live,
            "Announce it with this as soon as it starts; default: only once it is healthy.",
            |it, v, r| r.one_of(v).map(|standing| it.initial_status = Some(standing)),
        ),
        key(
            "enable_tag_override",
            Kind::Bool,
            "false",
            Live,
            "Let others change its tags in Consul's catalogue.",
            |it, v, r| r.boolean(v).map(|on| it.enable_tag_override = on),
        ),
        key(
            "deregister_critical_after",
            Kind::Duration,
            "",
            Live,
            "Let Consul remove it when it has failed for so long; Consul's least is a minute.",
            |it, v, r| r.period(v).map(|after| it.deregister_critical_after = Some(after)),
        ),
    ],
    later: &[],
    refused: &[],
};

/// A watch as it is written.
#[derive(Default)]
pub(crate) struct Watch {
    service: Option<(String, Span)>,
    file: Option<(PathBuf, Span)>,
    tag: Option<(String, Span)>,
    dc: Option<(String, Span)>,
    interval: Option<Duration>,
    debounce: Option<Duration>,
}

pub(crate) static WATCH: Table<Watch> = Table {
    keys: &[
        key(
            "service",
            Kind::Text,
            "",
            Live,
            "The service whose healthy instances are watched; default: the name of the watch.",
            |it, v, r| label(v, r).map(|service| it.service = Some((service, v.span))),
        ),
        key("tag", Kind::Text, "", Live, "Only instances with this tag.", |it, v, r| {
            label(v, r).map(|tag| it.tag = Some((tag, v.span)))
        }),
        key(
            "dc",
            Kind::Text,
            "",
            Live,
            "The datacenter; default: that of the Consul agent.",
            |it, v, r| label(v, r).map(|dc| it.dc = Some((dc, v.span))),
        ),
        key(
            "file",
            Kind::Text,
            "",
            Live,
            "A file instead of a service: healthy while it exists, changed when its content is. \
             Relative to the file that says so.",
            |it, v, r| path(v, r).map(|path| it.file = Some((path, v.span))),
        ),
        key(
            "interval",
            Kind::Duration,
            "\"10s\"",
            Live,
            "The longest time between two looks; changes are seen at once where the engine can tell.",
            |it, v, r| r.period(v).map(|interval| it.interval = Some(interval)),
        ),
        key(
            "debounce",
            Kind::Duration,
            "\"200ms\"",
            Live,
            "The shortest time between two changes that are told.",
            |it, v, r| r.duration(v).map(|debounce| it.debounce = Some(debounce)),
        ),
    ],
    later: &[],
    refused: &[],
};

impl DiscoveryKeys {
    /// What it means; `None` when something in it was wrong.
    pub(crate) fn judge(self, at: Span, r: &mut Reader<'_>) -> Option<Backend> {
        let Some((engine, engine_span)) = self.engine else {
            // A wrong one has been told.
            let help = "add engine = \"consul\" or engine = \"file\"";
            return r.wrong(at, "'engine' is missing", help);
        };
        match engine {
            BackendKind::Consul => {
                if let Some((_, span)) = self.dir {
                    let engine = (r.here(engine_span), "the engine");
                    return r.wrong_beside(
                        span,
                        engine,
                        "'dir' belongs to the file engine",
                        "remove it",
                    );
                }
                if let (Some((_, span)), Some((Scheme::Http, http))) = (&self.tls, &self.scheme) {
                    let help = "write scheme = \"https\", or remove tls";
                    let http = (r.here(*http), "the scheme");
                    return r.wrong_beside(*span, http, "'tls' is for https", help);
                }
                let https =
                    self.scheme.map_or(self.tls.is_some(), |(scheme, _)| scheme == Scheme::Https);
                let tls = self.tls.map(|(tls, _)| tls).unwrap_or_default();
                if tls.cert.is_some() != tls.key.is_some() {
                    let help = "give both, or none of them";
                    return r.wrong(at, "tls: a certificate and its key belong together", help);
                }
                Some(Backend::Consul(Consul {
                    address: self.address.map_or_else(|| Consul::ADDRESS.to_owned(), |(it, _)| it),
                    https,
                    token: self.token.map(|(token, _)| Secret::new(token)),
                    tls,
                }))
            }
            BackendKind::File => {
                let foreign = [
                    ("address", self.address.map(|(_, span)| span)),
                    ("scheme", self.scheme.map(|(_, span)| span)),
                    ("token", self.token.map(|(_, span)| span)),
                    ("tls", self.tls.map(|(_, span)| span)),
                ];
                if let Some((name, span)) =
                    foreign.into_iter().find_map(|(name, span)| Some((name, span?)))
                {
                    let engine = (r.here(engine_span), "the engine");
                    let message = format!("'{name}' belongs to Consul");
                    return r.wrong_beside(span, engine, message, "remove it");
                }
                match self.dir {
                    Some((directory, _)) => Some(Backend::File(FileCatalogue { directory })),
                    None => r.wrong(at, "'dir' is missing", "add dir = \"/path\""),
                }
            }
        }
    }
}

impl Watch {
    pub(crate) fn judge(self, name: Name, r: &mut Reader<'_>) -> Option<WatchPlan> {
        let of = match self.file {
            Some((file, file_span)) => {
                let foreign = [("service", &self.service), ("tag", &self.tag), ("dc", &self.dc)];
                if let Some((word, span)) =
                    foreign.into_iter().find_map(|(word, it)| Some((word, it.as_ref()?.1)))
                {
                    let help = "watch a service or a file: remove one of them";
                    let message = format!("'{word}' beside 'file'");
                    return r.wrong_beside(
                        span,
                        (r.here(file_span), "'file' is here"),
                        message,
                        help,
                    );
                }
                Watched::File(file)
            }
            None => Watched::Service {
                service: self.service.map_or_else(|| name.to_string(), |(it, _)| it),
                tag: self.tag.map(|(tag, _)| tag),
                dc: self.dc.map(|(dc, _)| dc),
            },
        };
        Some(WatchPlan {
            name,
            of,
            interval: self.interval.unwrap_or(WatchPlan::INTERVAL),
            debounce: self.debounce.unwrap_or(WatchPlan::DEBOUNCE),
        })
    }
}

/// Reads `advertise` of the job with this name in the catalogue.
pub(crate) fn advertise(v: Value<'_>, r: &mut Reader<'_>, service: &str) -> Option<Advertise> {
    let before = r.errors();
    let mut it = Advertise::new(service);
    r.nested(v, &ADVERTISE, &mut it)?;
    if r.errors() > before {
        return None;
    }
    if it.port == 0 {
        return r.wrong(v.span, "'port' is missing", "add port = 8080");
    }
    if it.ttl <= it.heartbeat {
        let message = format!(
            "heartbeats every {:?} are too rare for a ttl of {:?}: it would fail between two",
            it.heartbeat, it.ttl
        );
        return r.wrong(v.span, message, "let ttl be at least twice heartbeat");
    }
    Some(it)
}

/// What is shown in a catalogue and put into URLs and file names.
fn label(v: Value<'_>, r: &mut Reader<'_>) -> Option<String> {
    let text = r.filled(v)?;
    let fine = |c: char| !c.is_control() && !c.is_whitespace() && c != '/';
    if text.len() > 128 || text.starts_with('.') || !text.chars().all(fine) {
        let help = "use up to 128 characters, without blanks and '/', and no '.' at the start";
        return r.wrong(v.span, format!("'{text}' cannot be looked up"), help);
    }
    Some(text)
}

fn texts(v: Value<'_>, r: &mut Reader<'_>) -> Option<Vec<String>> {
    match v.de {
        DeValue::Array(_) => r.list(v, Reader::filled),
        _ => Some(vec![r.filled(v)?]),
    }
}

pub(crate) fn interfaces(v: Value<'_>, r: &mut Reader<'_>) -> Option<Vec<InterfaceSpec>> {
    let one = |r: &mut Reader<'_>, v: Value<'_>| {
        let text = r.filled(v)?;
        match text.parse::<InterfaceSpec>() {
            Ok(spec) => Some(spec),
            Err(error) => {
                let message = format!("'{text}' does not say which address to take");
                r.wrong(v.span, message, error.hint)
            }
        }
    };
    let all = match v.de {
        DeValue::Array(_) => r.list(v, one)?,
        _ => vec![one(r, v)?],
    };
    if all.is_empty() {
        return r.wrong(v.span, "an empty list", "write for example [\"eth0\", \"inet\"]");
    }
    Some(all)
}

fn path(v: Value<'_>, r: &mut Reader<'_>) -> Option<PathBuf> {
    let path = r.filled(v)?;
    Some(r.directory().join(path))
}

fn address(v: Value<'_>, r: &mut Reader<'_>) -> Option<String> {
    let text = r.filled(v)?;
    if let Some(path) = text.strip_prefix("unix:") {
        if path.starts_with('/') {
            return Some(text);
        }
        return r.wrong(v.span, format!("'{text}' is not an absolute path"), "write unix:/path");
    }
    if text.contains("://") {
        let help = "leave it out, and write scheme = \"https\" for https";
        return r.wrong(v.span, "a scheme in the address", help);
    }
    let parts =
        text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    match parts {
        Some((host, port)) if is_host(host) && port != 0 => Some(text),
        Some(_) | None => {
            let help = "write host:port, for example 127.0.0.1:8500";
            r.wrong(v.span, format!("'{text}' is not an address"), help)
        }
    }
}
