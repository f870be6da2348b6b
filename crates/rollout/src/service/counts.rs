//! What an instance has counted: `{"requests": n, "failures": m}`, or the text of raindrops.
//!
//! ```text
//!  calling: 2
//!  requests: 1042
//!  failures: 3
//!  /run/web.sock active: 1
//! ```
//!
//! Of that text the lines `requests` and `failures` count, which an application adds to its own;
//! sockets are shared by all instances and say nothing about one.

use mainstay_core::rollout::RequestCount;
use serde::Deserialize;
use std::str;
use thiserror::Error;

/// The longest answer that is looked at.
const LONGEST: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadCounts {
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
    #[error("it is not UTF-8")]
    NotUtf8,
    #[error("it is no JSON with the numbers 'requests' and 'failures'")]
    Json,
    #[error("'{0}' is not in it, as a number")]
    Missing(&'static str),
    #[error("'{0}' is in it more than once")]
    Twice(&'static str),
    #[error("it has counted more failures than requests")]
    Impossible,
}

/// May have more than that.
#[derive(Deserialize)]
struct Counts {
    requests: u64,
    failures: u64,
}

/// # Errors
/// When it does not say so.
pub fn request_count(answer: &[u8]) -> Result<RequestCount, BadCounts> {
    if answer.len() > LONGEST {
        return Err(BadCounts::TooLong);
    }
    let text = str::from_utf8(answer).map_err(|_| BadCounts::NotUtf8)?;
    let (requests, failures) = match text.trim_start().starts_with('{') {
        true => {
            let counts: Counts = serde_json::from_str(text).map_err(|_| BadCounts::Json)?;
            (counts.requests, counts.failures)
        }
        false => (line(text, "requests")?, line(text, "failures")?),
    };
    match failures <= requests {
        true => Ok(RequestCount { requests, failures }),
        false => Err(BadCounts::Impossible),
    }
}

fn line(text: &str, name: &'static str) -> Result<u64, BadCounts> {
    let mut found = None;
    for line in text.lines() {
        let Some((key, number)) = line.split_once(':') else { continue };
        if key.trim() != name {
            continue;
        }
        let number = number.trim().parse().map_err(|_| BadCounts::Missing(name))?;
        if found.replace(number).is_some() {
            return Err(BadCounts::Twice(name));
        }
    }
    found.ok_or(BadCounts::Missing(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_json_and_from_the_text_of_raindrops() {
        let counted = |requests, failures| Ok(RequestCount { requests, failures });
        assert_eq!(request_count(br#"{"requests": 20, "failures": 1, "x": []}"#), counted(20, 1));
        let text = "calling: 2\nwriting: 0\nrequests: 1042\nfailures: 3\n/run/a.sock active: 1\n";
        assert_eq!(request_count(text.as_bytes()), counted(1042, 3));
        let missing = request_count(b"calling: 2\nwriting: 0\n");
        assert_eq!(missing, Err(BadCounts::Missing("requests")));
        assert_eq!(request_count(b"requests: x\nfailures: 1"), Err(BadCounts::Missing("requests")));
        let twice = request_count(b"requests: 1\nrequests: 2\nfailures: 0\n");
        assert_eq!(twice, Err(BadCounts::Twice("requests")));
        assert_eq!(request_count(b"{\"requests\": -1, \"failures\": 0}"), Err(BadCounts::Json));
        assert_eq!(request_count(b"requests: 1\nfailures: 2\n"), Err(BadCounts::Impossible));
        assert_eq!(request_count(b"\xff"), Err(BadCounts::NotUtf8));
        assert_eq!(request_count(&[b' '; LONGEST + 1]), Err(BadCounts::TooLong));
    }
}
