//! `http` of a check: a URL, or a table that says more.

use crate::{
    keys::{Kind, Reload::Live, Table, key},
    notation::address::is_host,
    reader::{Reader, Span, Value, as_i64},
};
use mainstay_core::plan::{Http, HttpTls};
use toml::de::DeValue;

/// `http` as it is written, and where it says what is judged as a whole.
pub(crate) struct HttpKeys {
    http: Http,
    url: Option<Span>,
    tls: Option<Span>,
}

pub(crate) static HTTP: Table<HttpKeys> = Table {
    keys: &[
        key("url", Kind::Text, "", Live, "What is asked for. Required.", |it, v, r| {
            it.url = Some(v.span);
            url(v, r).map(|url| it.http.url = url)
        }),
        key("method", Kind::Text, "\"GET\"", Live, "The HTTP method.", |it, v, r| {
            let method = r.filled(v)?;
            if !method.bytes().all(|b| b.is_ascii_uppercase()) || method.len() > 32 {
                let help = "write for example \"GET\", \"HEAD\" or \"POST\"";
                return r.wrong(v.span, format!("'{method}' is not an HTTP method"), help);
            }
            it.http.method = method;
            Some(())
        }),
        key(
            "headers",
            Kind::Map,
            "{}",
            Live,
            "Headers to send; their values may hold secrets: ${file:/path}.",
            |it, v, r| r.map(v, header).map(|headers| it.http.headers = headers),
        ),
        key(
            "status",
            Kind::Statuses,
            "\"200-399\"",
            Live,
            "Which status codes pass: 200, \"2xx\", \"200-299\", or a list of these.",
            |it, v, r| {
                it.http.status = match v.de {
                    DeValue::Array(_) => r.list(v, status)?,
                    _ => vec![status(r, v)?],
                };
                if it.http.status == [(200, 399)] {
                    it.http.status.clear();
                }
                Some(())
            },
        ),
        key(
            "body_matches",
            Kind::Text,
            "",
            Live,
            "A regular expression that the first 64 KiB of the body must match.",
            |it, v, r| {
                let text = r.filled(v)?;
                if let Err(error) =
                    regex::RegexBuilder::new(&text).size_limit(1 << 20).nest_limit(64).build()
                {
                    let error = error.to_string();
                    let last = error.lines().last().unwrap_or_default();
                    let why = last.strip_prefix("error: ").unwrap_or(last);
                    let message = format!("'{text}' is not a regular expression: {why}");
                    return r.wrong(v.span, message, "put a backslash before special characters");
                }
                it.http.body_matches = Some(text);
                Some(())
            },
        ),
        key(
            "unix",
            Kind::Text,
            "",
            Live,
            "Connect to this unix socket instead of the host of the URL.",
            |it, v, r| r.filled(v).map(|path| it.http.unix = Some(path.into())),
        ),
        key("tls", Kind::Table, "{}", Live, "How https is verified.", |it, v, r| {
            it.tls = Some(v.span);
            r.nested(v, &TLS, &mut it.http.tls)
        }),
    ],
    later: &[],
    refused: &[],
};

pub(crate) static TLS: Table<HttpTls> = Table {
    keys: &[
        key(
            "ca",
            Kind::Text,
            "",
            Live,
            "A PEM file with the certificates to trust; default: those of the system.",
            |tls, v, r| r.filled(v).map(|path| tls.ca = Some(path.into())),
        ),
        key(
            "insecure",
            Kind::Bool,
            "false",
            Live,
            "Do not verify the certificate.",
            |tls, v, r| r.boolean(v).map(|it| tls.insecure = it),
        ),
        key(
            "server_name",
            Kind::Text,
            "",
            Live,
            "The name that the certificate must be for; default: the host of the URL.",
            |tls, v, r| {
                let name = r.filled(v)?;
                if !is_host(&name) {
                    let help = "write a host name";
                    return r.wrong(v.span, format!("'{name}' is not a host name"), help);
                }
                tls.server_name = Some(name);
                Some(())
            },
        ),
    ],
    later: &[],
    refused: &[],
};

pub(crate) fn read(v: Value<'_>, r: &mut Reader<'_>) -> Option<Http> {
    let mut it = HttpKeys {
        http: Http {
            url: String::new(),
            method: "GET".to_owned(),
            headers: Vec::new(),
            status: Vec::new(),
            body_matches: None,
            unix: None,
            tls: HttpTls::default(),
        },
        url: None,
        tls: None,
    };
    if !matches!(v.de, DeValue::Table(_)) {
        it.http.url = url(v, r)?;
        return Some(it.http);
    }
    r.nested(v, &HTTP, &mut it)?;
    let Some(url) = it.url else {
        return r.wrong(v.span, "'url' is missing", "add url = \"http://127.0.0.1:8080/healthz\"");
    };
    if let Some(span) = it.tls
        && it.http.url.starts_with("http://")
    {
        let url = (r.here(url), "the URL");
        let help = "use https:// in url, or remove tls";
        return r.wrong_beside(span, url, "'tls' with an http URL", help);
    }
    Some(it.http)
}

pub(crate) fn url(v: Value<'_>, r: &mut Reader<'_>) -> Option<String> {
    let text = r.filled(v)?;
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let Some(rest) = rest else {
        let help = "begin with http:// or https://, for example http://127.0.0.1:8080/healthz";
        return r.wrong(v.span, format!("'{text}' is not an HTTP URL"), help);
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if text.bytes().any(|b| b.is_ascii_whitespace() || b.is_ascii_control() || !b.is_ascii()) {
        let help = "write other characters as %XX";
        return r.wrong(v.span, format!("'{text}' holds characters that no URL has"), help);
    }
    if authority.contains('@') {
        let help = "put it into headers: { authorization = \"Basic ${file:/path}\" }";
        return r.wrong(v.span, "a user or password in the URL", help);
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    if port.is_some_and(|port| port.parse::<u16>().map_or(true, |port| port == 0)) {
        let help = "write a port from 1 to 65535 after the host";
        return r.wrong(v.span, format!("'{text}' has no valid port"), help);
    }
    if !is_host(host) {
        let help = "write for example http://127.0.0.1:8080/healthz";
        return r.wrong(v.span, format!("'{text}' has no valid host"), help);
    }
    Some(text)
}

fn header(r: &mut Reader<'_>, name: &str, at: Span, v: Value<'_>) -> Option<(String, String)> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(token) {
        return r.wrong(at, "not a name for a header", "use letters, digits and '-'");
    }
    let (value, _) = r.secret(|r| r.scalar(v))?;
    if value.bytes().any(|b| b.is_ascii_control() && b != b'\t') {
        // The value may be a secret: it is not shown.
        return r.wrong(v.span, "the value holds control characters", "keep it on one line");
    }
    Some((name.to_owned(), value))
}

fn status(r: &mut Reader<'_>, v: Value<'_>) -> Option<(u16, u16)> {
    let text = match v.de {
        DeValue::Integer(number) => as_i64(number).unwrap_or_default().to_string(),
        _ => r.text(v)?,
    };
    let code = |text: &str| text.parse::<u16>().ok().filter(|code| (100..=599).contains(code));
    let range = match text.as_bytes() {
        [class @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] => {
            let base = u16::from(class - b'0') * 100;
            Some((base, base + 99))
        }
        _ => match text.split_once('-') {
            Some((low, high)) => code(low).zip(code(high)).filter(|(low, high)| low <= high),
            None => code(&text).map(|code| (code, code)),
        },
    };
    match range {
        Some(range) => Some(range),
        None => r.wrong(
            v.span,
            format!("'{text}' is not a status code"),
            "write 200, \"2xx\", \"200-299\", or a list of these",
        ),
    }
}
