//! Content as templates see it: a tree of texts, numbers, lists and maps, within bounds.
//!
//! Whoever writes a profile is not trusted with the node: what is too large, too deep, not UTF-8,
//! says a key twice or would expand without end is refused,
//! and the refusal quotes nothing of it but the place.

use super::{content_type, document::LARGEST, json::Json};
use mainstay_core::plan::ProfileFormat;
use serde_json::{Map, Number, Value, error::Category};
use serde_saphyr::{Budget, DuplicateKeyPolicy};
use std::str;
use thiserror::Error;

/// The deepest nesting of lists and maps.
const DEEPEST: usize = 64;
/// Values in one profile, those that an alias brings counted each time.
const MOST_VALUES: usize = 200_000;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DataError {
    #[error("it has {size} bytes, and at most {LARGEST} are read")]
    TooLarge { size: usize },
    #[error("it is not UTF-8, from byte {at} on")]
    NotUtf8 { at: usize },
    #[error("a key stands twice: line {line}, column {column}")]
    Twice { line: usize, column: usize },
    #[error("it is no {}: line {line}, column {column}", content_type(*format))]
    Syntax { format: ProfileFormat, line: usize, column: usize },
    #[error("it is no {} with one value for each key, within bounds", content_type(*format))]
    Malformed { format: ProfileFormat },
    #[error("it is nested deeper than {DEEPEST} levels")]
    TooDeep,
    #[error("it has more than {MOST_VALUES} values")]
    TooMany,
    /// What JSON cannot say is not passed on: not a number, infinite.
    #[error("the number at '{key}' is not finite")]
    NotFinite { key: String },
}

/// What content comes to.
///
/// # Errors
/// When it is not what its type says, or beyond a bound.
pub fn read(format: ProfileFormat, bytes: &[u8]) -> Result<Value, DataError> {
    if bytes.len() > LARGEST {
        return Err(DataError::TooLarge { size: bytes.len() });
    }
    let text =
        str::from_utf8(bytes).map_err(|error| DataError::NotUtf8 { at: error.valid_up_to() })?;
    let value = match format {
        ProfileFormat::Json => json(text)?,
        ProfileFormat::Yaml => yaml(text)?,
        ProfileFormat::Toml => toml(text)?,
        ProfileFormat::Text => Value::String(text.to_owned()),
    };
    let mut values = 0;
    bounded(&value, 0, &mut values)?;
    Ok(value)
}

fn json(text: &str) -> Result<Value, DataError> {
    let format = ProfileFormat::Json;
    let Json(value) = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            Category::Data => DataError::Twice { line, column },
            Category::Syntax | Category::Eof | Category::Io => {
                DataError::Syntax { format, line, column }
            }
        }
    })?;
    Ok(value)
}

fn yaml(text: &str) -> Result<Value, DataError> {
    let mut budget = Budget::default();
    budget.max_depth = DEEPEST + 1;
    budget.max_nodes = MOST_VALUES;
    let mut options = serde_saphyr::Options::default();
    options.budget = Some(budget);
    options.alias_limits.max_total_replayed_events = MOST_VALUES * 2;
    options.duplicate_keys = DuplicateKeyPolicy::Error;
    // `no` is a country.
    options.strict_booleans = true;
    options.with_snippet = false;
    let format = ProfileFormat::Yaml;
    serde_saphyr::from_str_with_options(text, options).map_err(|error| match error.location() {
        Some(at) => DataError::Syntax {
            format,
            line: usize::try_from(at.line()).unwrap_or(0),
            column: usize::try_from(at.column()).unwrap_or(0),
        },
        None => DataError::Malformed { format },
    })
}

fn toml(text: &str) -> Result<Value, DataError> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start);
        let (line, column) = place(text, at);
        DataError::Syntax { format: ProfileFormat::Toml, line, column }
    })?;
    of_table(table)
}

fn of_table(table: toml::Table) -> Result<Value, DataError> {
    let pairs = table.into_iter().map(|(key, value)| {
        let value = of_toml(value, &key)?;
        Ok((key, value))
    });
    Ok(Value::Object(pairs.collect::<Result<Map<_, _>, _>>()?))
}

/// The parser has its own limit on depth.
fn of_toml(value: toml::Value, key: &str) -> Result<Value, DataError> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::Number(number.into()),
        toml::Value::Float(number) => Value::Number(
            Number::from_f64(number).ok_or_else(|| DataError::NotFinite { key: key.to_owned() })?,
        ),
        toml::Value::Boolean(truth) => Value::Bool(truth),
        toml::Value::Datetime(time) => Value::String(time.to_string()),
        toml::Value::Array(all) => {
            let all = all.into_iter().map(|it| of_toml(it, key));
            Value::Array(all.collect::<Result<Vec<_>, _>>()?)
        }
        toml::Value::Table(table) => of_table(table)?,
    })
}

/// Line and column of a byte, from 1.
pub(crate) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(at)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// No parser lets anything through that this could not walk.
fn bounded(value: &Value, depth: usize, values: &mut usize) -> Result<(), DataError> {
    *values += 1;
    if *values > MOST_VALUES {
        return Err(DataError::TooMany);
    }
    let deeper = |value: &Value, values: &mut usize| match depth {
        DEEPEST.. => Err(DataError::TooDeep),
        _ => bounded(value, depth + 1, values),
    };
    match value {
        Value::Array(all) => all.iter().try_for_each(|it| deeper(it, values)),
        Value::Object(all) => all.values().try_for_each(|it| deeper(it, values)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn four_formats_say_the_same() {
        let same = json!({"port": 80, "hosts": ["a", "b"], "tls": {"on": true, "rate": 0.5}});
        let texts = [
            (ProfileFormat::Json, r#"{"port":80,"hosts":["a","b"],"tls":{"on":true,"rate":0.5}}"#),
            (ProfileFormat::Yaml, "port: 80\nhosts: [a, b]\ntls:\n  on: true\n  rate: 0.5\n"),
            (ProfileFormat::Toml, "port = 80\nhosts = ['a', 'b']\n[tls]\non = true\nrate = 0.5\n"),
        ];
        for (format, text) in texts {
            assert_eq!(read(format, text.as_bytes()), Ok(same.clone()), "{format:?}");
        }
        assert_eq!(read(ProfileFormat::Text, b"a: b"), Ok(json!("a: b")));
    }

    #[test]
    fn what_looks_like_something_else_stays_what_it_is() {
        let yaml =
            read(ProfileFormat::Yaml, b"country: no\nversion: 1.10\nodd: 0o17\nnothing: ~\n");
        assert_eq!(yaml, Ok(json!({"country": "no", "version": 1.10, "odd": 15, "nothing": null})));
        let toml = read(ProfileFormat::Toml, b"at = 2026-01-02T03:04:05Z");
        assert_eq!(toml, Ok(json!({"at": "2026-01-02T03:04:05Z"})));
    }

    #[test]
    fn a_mistake_is_told_by_its_place_and_quotes_nothing() {
        let told = |format, text: &str| read(format, text.as_bytes()).expect_err("no");
        let at = |format, line, column| DataError::Syntax { format, line, column };
        assert_eq!(told(ProfileFormat::Json, "{\n  \"a\": hush\n}"), at(ProfileFormat::Json, 2, 8));
        assert_eq!(told(ProfileFormat::Toml, "a = 1\nb = hush\n"), at(ProfileFormat::Toml, 2, 5));
        let yaml = told(ProfileFormat::Yaml, "a: 1\nb: [hush\n");
        assert!(matches!(yaml, DataError::Syntax { line: 2.., .. }), "{yaml:?}");
        assert!(!yaml.to_string().contains("hush"));
        let twice = told(ProfileFormat::Yaml, "a: 1\na: 2\n");
        assert!(matches!(twice, DataError::Syntax { line: 2, .. }), "{twice:?}");
        let twice = told(ProfileFormat::Toml, "a = 1\na = 2\n");
        assert!(matches!(twice, DataError::Syntax { line: 2, .. }), "{twice:?}");
        let twice = told(ProfileFormat::Json, "{\"a\": [{\n  \"b\": 1, \"c\": 2, \"b\": 1}]}");
        assert!(matches!(twice, DataError::Twice { line: 2, .. }), "{twice:?}");
        assert!(read(ProfileFormat::Toml, b"a = nan").is_err());
        assert!(read(ProfileFormat::Yaml, b"a: .inf").is_err());
        assert!(read(ProfileFormat::Json, b"{\"a\": 1e999}").is_err());
    }

    #[test]
    fn what_is_too_large_too_deep_or_not_utf_8_is_refused() {
        let all =
            [ProfileFormat::Json, ProfileFormat::Yaml, ProfileFormat::Toml, ProfileFormat::Text];
        for format in all {
            let large = vec![b' '; LARGEST + 1];
            let size = LARGEST + 1;
            assert_eq!(read(format, &large), Err(DataError::TooLarge { size }));
            assert_eq!(read(format, b"ab\xff"), Err(DataError::NotUtf8 { at: 2 }));
        }
        let nested = |open: &str, close: &str, depth: usize, before: &str| {
            format!("{before}{}{}", open.repeat(depth), close.repeat(depth))
        };
        for depth in [70, 100_000] {
            let (json, toml) = (nested("[", "]", depth, ""), nested("[", "]", depth, "a = "));
            assert!(read(ProfileFormat::Json, json.as_bytes()).is_err());
            assert!(read(ProfileFormat::Yaml, json.as_bytes()).is_err());
            assert!(read(ProfileFormat::Yaml, "- ".repeat(depth).as_bytes()).is_err());
            assert!(read(ProfileFormat::Toml, toml.as_bytes()).is_err());
        }
        let fits = nested("[", "]", 60, "");
        assert!(read(ProfileFormat::Json, fits.as_bytes()).is_ok());
        assert!(read(ProfileFormat::Yaml, fits.as_bytes()).is_ok());
    }

    #[test]
    fn a_yaml_that_would_explode_is_refused() {
        let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for n in 1..12 {
            let all = vec![format!("*a{}", n - 1); 10].join(",");
            text.push_str(&format!("a{n}: &a{n} [{all}]\n"));
        }
        assert!(read(ProfileFormat::Yaml, text.as_bytes()).is_err());
    }
}
