//! Secrets of a job in what it, its commands and its checks say: shown nowhere.

use mainstay_core::plan::{JobPlan, Probe};

/// Shorter values of headers are words like `close`, which a server may well say by itself.
const SHORTEST_HEADER: usize = 8;

const HIDDEN: &str = "[secret]";

/// The text without the values of the job's secrets.
pub(crate) fn hide(plan: &JobPlan, text: String) -> String {
    let mut values: Vec<&str> = plan
        .env
        .iter()
        .filter(|(name, _)| plan.secrets.contains(name))
        // A file of several lines may be shown line by line.
        .flat_map(|(_, value)| std::iter::once(value.as_str()).chain(value.lines()))
        // Which header is secret nobody has written down.
        .chain(headers(plan).filter(|value| value.len() >= SHORTEST_HEADER))
        .map(str::trim)
        .filter(|value| !value.is_empty())
        .collect();
    // One that is part of another must not spoil it.
    values.sort_unstable_by_key(|value| (std::cmp::Reverse(value.len()), *value));
    values.dedup();
    values.into_iter().fold(text, |text, value| match text.contains(value) {
        true => text.replace(value, HIDDEN),
        false => text,
    })
}

/// What is sent with http checks.
fn headers(plan: &JobPlan) -> impl Iterator<Item = &str> {
    let checks = plan.checks.iter().filter_map(|check| match &check.probe {
        Probe::Http(http) => Some(&http.headers),
        Probe::Exec(_) | Probe::Tcp(_) | Probe::Notify | Probe::Fd(_) => None,
    });
    checks.flatten().map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_core::name::Name;

    fn plan(env: &[(&str, &str)]) -> JobPlan {
        let mut plan = JobPlan::new(Name::new("job").expect("a name"), vec!["true".to_owned()]);
        plan.env =
            env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        plan.secrets = vec!["TOKEN".to_owned(), "KEY".to_owned(), "NONE".to_owned()];
        plan
    }

    #[test]
    fn values_of_secrets_are_hidden_and_nothing_else_is() {
        let plan = plan(&[
            ("TOKEN", "abc"),
            ("KEY", "abcdef\nsecond line"),
            ("NONE", ""),
            ("OPEN", "fine"),
        ]);
        let text = "abcdef with abc, fine\n> second line".to_owned();
        assert_eq!(hide(&plan, text), "[secret] with [secret], fine\n> [secret]");
        assert_eq!(hide(&plan, "nothing".to_owned()), "nothing");
    }
}
