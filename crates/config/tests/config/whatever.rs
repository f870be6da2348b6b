//! Whatever the text is, the answer is a plan or a list of mistakes: never a panic, never a hang.

use super::{context, refused};
use mainstay_config::parse;
use mainstay_core::plan::JobPlan;
use proptest::prelude::*;
use std::sync::Arc;

const VALID: &str = include_str!("../testdata/whole/valid.toml");

fn survives(text: &str) {
    match parse("x.toml", text, &context()) {
        Ok(loaded) => {
            // What runs nothing is announced or checked.
            let does = |job: &Arc<JobPlan>| {
                !job.exec.is_empty() || job.advertise.is_some() || !job.checks.is_empty()
            };
            assert!(loaded.plan.jobs.iter().all(does));
        }
        Err(errors) => {
            assert!(errors.len() > 0);
            for error in &errors {
                if let Some(spot) = &error.spot {
                    assert!(spot.line <= text.split('\n').count());
                    assert!(spot.text.get(spot.mark.clone()).is_some(), "{spot:?}");
                }
            }
            assert!(!errors.render(true).is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn any_text(text in any::<String>()) {
        survives(&text);
    }

    #[test]
    fn any_tokens(tokens in prop::collection::vec(prop::sample::select(vec![
        "[", "]", "[[", "]]", "{", "}", "=", ".", ",", "\"", "'", "\"\"\"", "\n", "\r\n", " ", "#", "jobs", "x",
        "exec", "node", "name", "env", "0o", "1e9", "-", "nan", "inf", "true", "1979-05-27", "\\u0000", "${", "}", "é",
    ]), 0..60)) {
        survives(&tokens.concat());
    }

    #[test]
    fn a_valid_file_with_a_stretch_replaced(
        start in 0..VALID.len(), length in 0..40usize, put in "[ -~\n]{0,12}",
    ) {
        let start = VALID.floor_char_boundary(start);
        let end = VALID.ceil_char_boundary((start + length).min(VALID.len()));
        survives(&format!("{}{put}{}", &VALID[..start], &VALID[end..]));
    }

    #[test]
    fn any_value_for_any_key(index in any::<prop::sample::Index>(), value in any::<String>(), number in any::<f64>()) {
        let keys = mainstay_config::keys();
        let key = &keys[index.index(keys.len())];
        let table = key.table.replace("NAME", "x");
        let quoted = format!("{value:?}");
        for value in [quoted.as_str(), &format!("{number:?}"), &format!("[{quoted}]"), &format!("{{ {quoted} = {quoted} }}")] {
            survives(&format!("[{table}]\n{} = {value}\n", key.name));
        }
    }
}

#[test]
fn the_valid_file_is_valid() {
    assert!(parse("valid.toml", VALID, &context()).is_ok());
}

#[test]
fn deep_nesting_is_refused_without_using_up_the_stack() {
    let deep = 100_000;
    for text in [
        format!("a = {}", "[".repeat(deep)),
        format!("a = {}1{}", "[".repeat(deep), "]".repeat(deep)),
        format!("a = {}", "{a=".repeat(deep)),
        format!("{}a = 1", "a.".repeat(deep)),
        format!("[{}a]", "a.".repeat(deep)),
        format!("a = {}", format!("[{{{}a=", "a.".repeat(70)).repeat(deep / 100)),
    ] {
        let told = refused(&text);
        assert!(told.starts_with("error: "), "{told}");
    }
}

#[test]
fn many_mistakes_are_told_to_the_end() {
    let large = 512 << 10;
    for piece in ["=\n", "[", "\"", "x = \n", "{", "'", "[a]\n", "a.b = 1\n", "\u{1}"] {
        survives(&piece.repeat(large / piece.len()));
        survives(&piece.repeat((50 << 10) / piece.len()));
    }
    let keys: String = (0..20_000).map(|n| format!("k{n} = {n}\n")).collect();
    survives(&format!("[jobs.x]\n{keys}"));
}

#[test]
fn many_jobs_that_wait_are_read_to_the_end() {
    let job = |n: usize, source: String| {
        format!(
            "[jobs.j{n}]\nexec = \"x\"\nwhen = {{ source = \"{source}\", once = \"healthy\" }}\n"
        )
    };
    let jobs = |source: fn(usize) -> String| -> String {
        (0..10_000).map(|n| job(n, source(n))).collect()
    };
    // A circle of all, a chain of all but one, and ten thousand wrong names.
    assert!(refused(&jobs(|n| format!("j{}", (n + 1) % 10_000))).contains("wait for each other"));
    assert!(refused(&jobs(|n| format!("j{}", n + 1))).contains("there is no job 'j10000'"));
    assert!(refused(&jobs(|n| format!("k{n}"))).contains("1000 mistakes"));
    survives(&(0..100_000).map(|n| format!("[apps.a{n}]\n")).collect::<String>());
    survives(&format!("[jobs.x]\nexec = \"x\"\nhealth = [{}]", "{ fd = 9 },".repeat(100_000)));
    survives(&format!(
        "[jobs.x]\nexec = \"x\"\nwhen = [{}]",
        "{ once = \"startup\" },".repeat(1000)
    ));
}
