//! As much of AWS AppConfig and Secrets Manager as a node needs for one profile with one secret.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure::Result;
use crate::web::Server;

#[derive(Debug)]
pub(crate) struct AppConfig {
    server: Server,
    polls: Arc<AtomicU64>,
}

impl AppConfig {
    /// Seconds from one poll to the next, as it tells its clients.
    pub(crate) const INTERVAL: u32 = 1;

    pub(crate) fn start() -> Result<AppConfig> {
        let polls = Arc::new(AtomicU64::new(0));
        let counted = polls.clone();
        let server = Server::answering(move |request| answer(request, &counted))?;
        Ok(AppConfig { server, polls })
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// How often the configuration was asked for.
    pub(crate) fn polls(&self) -> u64 {
        self.polls.load(Ordering::Relaxed)
    }
}

fn answer(request: &str, polls: &AtomicU64) -> Vec<u8> {
    let token = |number: u64| format!("Next-Poll-Configuration-Token: token-{number}\r\n");
    let (code, head, body) = if request.starts_with("POST /configurationsessions") {
        ("201 Created", String::new(), r#"{"InitialConfigurationToken": "token-0"}"#)
    } else if request.starts_with("GET /configuration?") {
        let poll = polls.fetch_add(1, Ordering::Relaxed) + 1;
        let interval = format!("Next-Poll-Interval-In-Seconds: {}\r\n", AppConfig::INTERVAL);
        let body = match poll {
            1 => r#"{"port": 1, "secrets": {"key": {"secret_id": "shop/key"}}}"#,
            _ => "",
        };
        ("200 OK", token(poll) + &interval + "Version-Label: v1\r\n", body)
    } else if request.to_ascii_lowercase().contains("secretsmanager.getsecretvalue") {
        let secret = r#"{"Name": "shop/key", "VersionId": "1", "SecretString": "hidden"}"#;
        ("200 OK", String::new(), secret)
    } else {
        ("404 Not Found", String::new(), "{}")
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {code}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         {head}Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}
