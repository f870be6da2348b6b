//! Several trees as one: files that go over the first, and processes that extend others.
//!
//! A map is merged key by key; a text of the later one stands for that of the earlier, unless it
//! says nothing (an empty text, 0, false); lists are put together, variables by name.

use crate::yaml::{YamlNode, YamlValue};

const MOST_EXTENSIONS: usize = 100;

pub(super) fn merge(base: YamlNode, over: &YamlNode) -> YamlNode {
    value("", base, over)
}

fn value(key: &str, base: YamlNode, over: &YamlNode) -> YamlNode {
    let YamlNode { file, line, value: below } = base;
    let merged = match (below, &over.value) {
        (YamlValue::Map(mut pairs), YamlValue::Map(more)) => {
            for (name, node) in more {
                match pairs.iter_mut().find(|(known, _)| known == name) {
                    Some((_, known)) => *known = value(name, known.clone(), node),
                    None => pairs.push((name.clone(), node.clone())),
                }
            }
            YamlValue::Map(pairs)
        }
        (YamlValue::List(items), YamlValue::List(more)) => match key {
            "environment" => YamlValue::List(variables(items, more)),
            // Replaced as a whole.
            "namespace" | "paths" => return over.clone(),
            _ => YamlValue::List(items.into_iter().chain(more.iter().cloned()).collect()),
        },
        (below, YamlValue::Scalar { text, .. }) if says_nothing(key, text) => below,
        _ => return over.clone(),
    };
    YamlNode { file, line, value: merged }
}

fn says_nothing(key: &str, text: &str) -> bool {
    match key {
        "restart" => text == "no" || text.is_empty(),
        "condition" => text == "process_completed" || text.is_empty(),
        _ => matches!(text, "" | "0" | "false" | "null" | "~"),
    }
}

fn variables(items: Vec<YamlNode>, more: &[YamlNode]) -> Vec<YamlNode> {
    let name =
        |node: &YamlNode| node.text().and_then(|it| it.split_once('=')).map(|it| it.0.to_owned());
    let mut all = items;
    for item in more {
        let named = name(item);
        all.retain(|known| named.is_none() || name(known) != named);
        all.push(item.clone());
    }
    all
}

/// The process with what it extends below it; or why it cannot be.
pub(super) fn extended(processes: &YamlNode, name: &str) -> Result<YamlNode, String> {
    let mut chain = Vec::new();
    let mut at = name.to_owned();
    loop {
        let node = processes
            .get(&at)
            .ok_or_else(|| format!("'{name}' extends '{at}', which is not there"))?;
        if chain.len() == MOST_EXTENSIONS || chain.iter().any(|(known, _)| *known == at) {
            return Err(format!("'{name}' extends itself"));
        }
        let parent = node.get("extends").and_then(YamlNode::text).map(str::to_owned);
        chain.push((at, node));
        match parent {
            Some(parent) => at = parent,
            None => break,
        }
    }
    let mut chain = chain.into_iter().rev().map(|(_, node)| node);
    let first = chain.next().cloned().ok_or_else(|| format!("'{name}' is not there"))?;
    Ok(chain.fold(first, merge))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;

    #[test]
    fn a_later_file_goes_over_the_first() {
        let base =
            parse("a:\n  command: x\n  replicas: 2\n  environment: [A=1, B=2]\n  args: [p]\n", 0);
        let over = parse(
            "a:\n  command: y\n  replicas: 0\n  environment: [B=3]\n  args: [q]\nb: {command: z}\n",
            1,
        );
        let (base, over) = (base.expect("valid"), over.expect("valid"));
        let merged = merge(base, &over);
        let a = merged.get("a").expect("there");
        let texts = |key: &str| -> Vec<String> {
            let Some(YamlValue::List(items)) = a.get(key).map(|it| &it.value) else {
                panic!("a list")
            };
            items.iter().filter_map(YamlNode::text).map(str::to_owned).collect()
        };
        assert_eq!(a.get("command").and_then(YamlNode::text), Some("y"));
        assert_eq!(a.get("command").map(|it| (it.file, it.line)), Some((1, 2)));
        assert_eq!(a.get("replicas").and_then(YamlNode::text), Some("2"));
        assert_eq!(
            (texts("environment"), texts("args")),
            (vec!["A=1".into(), "B=3".into()], vec!["p".into(), "q".into()])
        );
        assert!(merged.get("b").is_some());
    }

    #[test]
    fn a_process_extends_others_and_not_itself() {
        let all = parse("a: {command: x, namespace: n}\nb: {extends: a, command: y}\nc: {extends: d}\nd: {extends: c}\n", 0).expect("valid");
        let b = extended(&all, "b").expect("there");
        assert_eq!(b.get("command").and_then(YamlNode::text), Some("y"));
        assert_eq!(b.get("namespace").and_then(YamlNode::text), Some("n"));
        assert!(extended(&all, "c").is_err());
    }
}
