//! What a template may call: Go's own functions, which the engine brings, and those that
//! ContainerPilot adds. The piped value is always the last argument.

use super::{regex, work::WorkBudget};
use gotmpl::{TemplateError, Value};
use std::{collections::BTreeMap, sync::Arc};

pub(super) const NAMES: [&str; 25] = [
    "default",
    "env",
    "split",
    "join",
    "replaceAll",
    "regexReplaceAll",
    "loop",
    "and",
    "or",
    "not",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "len",
    "index",
    "slice",
    "print",
    "printf",
    "println",
    "html",
    "js",
    "urlquery",
];

/// No template can call it by this name.
pub(super) const BOUND: &str = "\0bound";

/// As large as a file may be; and steps of one loop.
const LARGEST: usize = 8 << 20;
/// No variable is as large: it may be given to a function many times at once.
const LARGEST_VALUE: usize = 1 << 20;
const MOST_STEPS: u64 = 1_000_000;

type Outcome = Result<Value, TemplateError>;
type Function = Box<dyn Fn(&[Value]) -> Outcome + Send + Sync>;

pub(super) fn all(
    env: &BTreeMap<String, String>,
    work: &Arc<WorkBudget>,
) -> Vec<(&'static str, Function)> {
    let env = env.clone();
    let costly = |function: fn(&WorkBudget, &[Value]) -> Outcome| {
        let work = Arc::clone(work);
        Box::new(move |args: &[Value]| function(&work, args))
    };
    let lookup = move |args: &[Value]| {
        let [name] = several("env", args)?;
        let name = text("env", name)?;
        Ok(string(env.get(&*name).map(String::as_str).unwrap_or_default()))
    };
    vec![
        ("env", Box::new(lookup)),
        ("default", Box::new(default)),
        ("split", costly(split)),
        ("join", costly(join)),
        ("replaceAll", costly(replace_all)),
        ("regexReplaceAll", costly(regex_replace_all)),
        ("loop", costly(steps)),
        ("index", Box::new(index)),
        (BOUND, costly(bound)),
    ]
}

pub(super) fn failed<T>(message: impl Into<String>) -> Result<T, TemplateError> {
    Err(TemplateError::Exec(message.into()))
}

fn string(text: &str) -> Value {
    Value::String(text.into())
}

fn several<'a, const N: usize>(
    name: &str,
    args: &'a [Value],
) -> Result<&'a [Value; N], TemplateError> {
    args.try_into()
        .or_else(|_| failed(format!("'{name}' takes {N} arguments, it was given {}", args.len())))
}

fn text(name: &str, value: &Value) -> Result<Arc<str>, TemplateError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        other => failed(format!("'{name}' was given '{other}' where it takes text")),
    }
}

/// The value, unless it is empty or no text.
fn default(args: &[Value]) -> Outcome {
    let [instead, value] = several("default", args)?;
    match value {
        Value::String(text) if !text.is_empty() => Ok(value.clone()),
        _ => Ok(string(&instead.to_string())),
    }
}

fn split(work: &WorkBudget, args: &[Value]) -> Outcome {
    let [separator, value] = several("split", args)?;
    let (separator, value) = (text("split", separator)?, text("split", value)?);
    work.items(value.len())?;
    let value = value.trim();
    let parts: Vec<Value> = match (value.is_empty(), separator.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => value.chars().map(|c| string(c.encode_utf8(&mut [0; 4]))).collect(),
        (false, false) => value.split(&*separator).map(string).collect(),
    };
    Ok(Value::List(parts.into()))
}

fn join(work: &WorkBudget, args: &[Value]) -> Outcome {
    let [separator, values] = several("join", args)?;
    let separator = text("join", separator)?;
    let Value::List(values) = values else {
        return failed(format!("'join' was given '{values}' where it takes a list"));
    };
    work.items(values.len())?;
    let parts: Vec<String> = values.iter().map(Value::to_string).collect();
    let joined = parts.join(&separator);
    work.text(joined.len())?;
    bounded("join", joined)
}

fn replace_all(work: &WorkBudget, args: &[Value]) -> Outcome {
    let [from, to, value] = several("replaceAll", args)?;
    let (from, to) = (text("replaceAll", from)?, text("replaceAll", to)?);
    let value = text("replaceAll", value)?;
    let most = if from.is_empty() { value.len() + 1 } else { value.len() / from.len() };
    if value.len().saturating_add(most.saturating_mul(to.len())) > LARGEST {
        return failed("'replaceAll' would make more than 8 MiB");
    }
    let replaced = value.replace(&*from, &to);
    work.text(value.len() + replaced.len())?;
    Ok(string(&replaced))
}

fn regex_replace_all(work: &WorkBudget, args: &[Value]) -> Outcome {
    let name = "regexReplaceAll";
    let [pattern, to, value] = several(name, args)?;
    let (pattern, to) = (text(name, pattern)?, text(name, to)?);
    let value = text(name, value)?;
    // It is compiled each time, which takes longer than reading it.
    work.text((pattern.len() + 32).saturating_mul(128).saturating_add(value.len()))?;
    let regex = match regex::compile(&pattern) {
        Ok(regex) => regex,
        Err(why) => return failed(format!("'{pattern}' is no regular expression: {why}")),
    };
    if value.len().saturating_add((value.len() + 1).saturating_mul(to.len())) > LARGEST {
        return failed("'regexReplaceAll' might make more than 8 MiB");
    }
    Ok(string(&regex.replace_all(&value, &*to)))
}

/// `loop N`: 0 to N-1. `loop A B`: from A up or down to B, which is not in it.
fn steps(work: &WorkBudget, args: &[Value]) -> Outcome {
    let (from, to) = match args {
        [to] => (0, number(to)?),
        [from, to] => (number(from)?, number(to)?),
        _ => {
            return failed(format!(
                "'loop' takes one or two arguments, it was given {}",
                args.len()
            ));
        }
    };
    if from.abs_diff(to) > MOST_STEPS {
        return failed(format!("'loop' from {from} to {to} is more than {MOST_STEPS} steps"));
    }
    work.items(usize::try_from(from.abs_diff(to)).unwrap_or(usize::MAX))?;
    let all: Vec<Value> = match from <= to {
        true => (from..to).map(Value::Int).collect(),
        false => (to + 1..=from).rev().map(Value::Int).collect(),
    };
    Ok(Value::List(all.into()))
}

fn number(value: &Value) -> Result<i64, TemplateError> {
    let found = match value {
        Value::Int(number) => Some(*number),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    found.map_or_else(|| failed(format!("'loop' was given '{value}', which is no integer")), Ok)
}

/// Go's, with the one difference that variables which are not set are empty text.
fn index(args: &[Value]) -> Outcome {
    let Some((first, rest)) = args.split_first() else {
        return failed("'index' takes a list or a map, and where to look in it");
    };
    let mut value = first.clone();
    for at in rest {
        let found = value.index(at)?;
        value = match (&value, found) {
            (Value::Map(_), Value::Nil) => string(""),
            (_, found) => found,
        };
    }
    Ok(value)
}

/// The value, unless it is too large, or one too many.
fn bound(work: &WorkBudget, args: &[Value]) -> Outcome {
    let [value] = several("a pipeline", args)?;
    let size = match value {
        Value::String(text) if text.len() > LARGEST_VALUE => {
            return failed("it makes more than 1 MiB of text");
        }
        Value::String(text) => text.len(),
        _ => 0,
    };
    work.text(size)?;
    Ok(value.clone())
}

fn bounded(name: &str, text: String) -> Outcome {
    match text.len() > LARGEST {
        true => failed(format!("'{name}' makes more than 8 MiB")),
        false => Ok(Value::String(text.into())),
    }
}
