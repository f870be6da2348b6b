//! A strict reader of the OpenMetrics text format: what it accepts, every scraper does.
//!
//! Families are described before their samples, once, and stay together; samples have the suffixes
//! of their type; no series comes twice; counters do not go below zero, buckets add up.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct Exposition {
    /// By name and labels, as they are written.
    pub(super) series: BTreeMap<String, f64>,
    /// Name to type.
    pub(super) families: BTreeMap<String, String>,
}

struct Sample<'t> {
    name: &'t str,
    labels: Vec<(&'t str, String)>,
    value: f64,
}

impl Exposition {
    pub(super) fn get(&self, series: &str) -> Option<f64> {
        self.series.get(series).copied()
    }

    /// The names of all samples.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        self.series.keys().filter_map(|series| series.split('{').next()).collect()
    }

    pub(super) fn parse(text: &str) -> Result<Exposition, String> {
        let body = text.strip_suffix("# EOF\n").ok_or("it does not end with '# EOF'")?;
        let mut all = Exposition::default();
        let mut current = String::new();
        let mut samples: Vec<Sample<'_>> = Vec::new();
        for line in body.lines() {
            let fail = |why: &str| format!("{why}: {line}");
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                all.judge(&current, &samples)?;
                samples.clear();
                let (name, kind) = rest.split_once(' ').ok_or_else(|| fail("no type"))?;
                let kinds = ["counter", "gauge", "histogram", "summary", "info", "unknown"];
                if !kinds.contains(&kind) || !is_name(name) {
                    return Err(fail("not a type"));
                }
                if all.families.insert(name.to_owned(), kind.to_owned()).is_some() {
                    return Err(fail("described twice"));
                }
                current = name.to_owned();
            } else if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').ok_or_else(|| fail("no help"))?;
                if name != current || !samples.is_empty() || unescaped(help).is_none() {
                    return Err(fail("help in the wrong place, or not escaped"));
                }
            } else {
                let sample = sample(line).ok_or_else(|| fail("not a sample"))?;
                let key = line.rsplit_once(' ').map_or(line, |(key, _)| key).to_owned();
                if all.series.insert(key, sample.value).is_some() {
                    return Err(fail("comes twice"));
                }
                samples.push(sample);
            }
        }
        all.judge(&current, &samples)?;
        Ok(all)
    }

    /// One family, all of it.
    fn judge(&self, family: &str, samples: &[Sample<'_>]) -> Result<(), String> {
        let Some(kind) = self.families.get(family) else {
            return if samples.is_empty() { Ok(()) } else { Err("samples without a type".into()) };
        };
        let suffixes: &[&str] = match kind.as_str() {
            "counter" => &["_total"],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_sum", "_count"],
            "summary" => &["", "_sum", "_count"],
            _ => &[""],
        };
        for sample in samples {
            let suffix = sample.name.strip_prefix(family).unwrap_or("?");
            if !suffixes.contains(&suffix) {
                return Err(format!("{} is no sample of the {kind} {family}", sample.name));
            }
            let never_negative = matches!(suffix, "_total" | "_bucket" | "_count");
            if never_negative && !(sample.value >= 0.0 && sample.value.is_finite()) {
                return Err(format!("{} is {}", sample.name, sample.value));
            }
            let named = |name: &str| sample.labels.iter().any(|(label, _)| *label == name);
            if named("le") != (suffix == "_bucket") {
                return Err(format!("{}: le belongs to buckets", sample.name));
            }
            if named("quantile") != (kind == "summary" && suffix.is_empty()) {
                return Err(format!("{}: quantile belongs to summaries", sample.name));
            }
            if kind == "info" && sample.value != 1.0 {
                return Err(format!("{} is not 1", sample.name));
            }
        }
        if kind == "histogram" { buckets_add_up(family, samples) } else { Ok(()) }
    }
}

fn buckets_add_up(family: &str, samples: &[Sample<'_>]) -> Result<(), String> {
    let mut last: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for sample in samples {
        let others: Vec<String> = sample
            .labels
            .iter()
            .filter(|(name, _)| *name != "le")
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let group = others.join(",");
        let le = sample.labels.iter().find(|(name, _)| *name == "le").map(|(_, le)| le.as_str());
        match (le, sample.name.ends_with("_count")) {
            (Some(le), _) => {
                if le != "+Inf" && !le.contains('.') {
                    return Err(format!("{family}: the bound {le} is not canonical"));
                }
                let bound =
                    if le == "+Inf" { f64::INFINITY } else { number(le).ok_or("a bound")? };
                let before = last.insert(group, (bound, sample.value));
                if before.is_some_and(|(was, count)| bound <= was || sample.value < count) {
                    return Err(format!("{family}: buckets do not ascend at {le}"));
                }
            }
            (None, true) if last.get(&group) != Some(&(f64::INFINITY, sample.value)) => {
                return Err(format!("{family}: its count is not that of +Inf"));
            }
            (None, _) => {}
        }
    }
    Ok(())
}

fn is_name(text: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().all(inside) && !text.starts_with(|c: char| c.is_ascii_digit()) && !text.is_empty()
}

fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        // What Rust reads beyond that ("inf", "infinity") others do not.
        text if text.bytes().all(|b| b.is_ascii_digit() || b"+-.e".contains(&b)) => {
            text.parse().ok()
        }
        _ => None,
    }
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"")?;
            let end = quote(after)?;
            let value = unescaped(&after[..end])?;
            if !is_name(label) || labels.iter().any(|(name, _)| *name == label) {
                return None;
            }
            labels.push((label, value));
            rest = &after[end + 1..];
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => break,
            }
        }
        rest = rest.strip_prefix('}')?;
    }
    let value = number(rest.strip_prefix(' ')?)?;
    is_name(name).then_some(Sample { name, labels, value })
}

/// Where a label value ends.
fn quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let end = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        end.then_some(at)
    })
}

fn unescaped(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => out.push(match rest.next()? {
                'n' => '\n',
                c @ ('\\' | '"') => c,
                _ => return None,
            }),
            '"' => return None,
            c => out.push(c),
        }
    }
    Some(out)
}

#[test]
fn the_reader_refuses_what_is_wrong() {
    let good = "# TYPE a counter\n# HELP a say \\\"x\\\"\na_total{l=\"1\"} 1\n# TYPE h histogram\n\
                h_bucket{le=\"1.0\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3.5\nh_count 2\n# EOF\n";
    Exposition::parse(good).expect("nothing is wrong with it");
    for (from, to) in [
        ("# EOF\n", ""),
        ("a_total{", "a{"),
        ("} 1\n# TYPE h", "} -1\n# TYPE h"),
        ("l=\"1\"", "l=\"1"),
        ("l=\"1\"", "l=\"1\",l=\"2\""),
        ("le=\"1.0\"", "le=\"1\""),
        ("h_count 2", "h_count 3"),
        ("le=\"+Inf\"} 2", "le=\"+Inf\"} 0"),
        ("# TYPE h histogram", "# TYPE a histogram"),
        ("h_sum 3.5", "h_sum inf"),
        ("h_sum 3.5", "h_sum 3.5\n\n"),
        ("\\\"x", "\"x"),
        ("a_total{l=\"1\"} 1\n", "a_total{l=\"1\"} 1\na_total{l=\"1\"} 1\n"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert!(Exposition::parse(&bad).is_err(), "{bad}");
    }
}
