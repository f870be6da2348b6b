//! Secrets of a job in what it and its commands say about themselves: shown nowhere.

use mainstay_core::plan::JobPlan;

const HIDDEN: &str = "[secret]";

/// The text without the values of the job's secrets.
pub(crate) fn hide(plan: &JobPlan, text: String) -> String {
    let mut values: Vec<&str> = plan
        .env
        .iter()
        .filter(|(name, _)| plan.secrets.contains(name))
        // A file of several lines may be shown line by line.
        .flat_map(|(_, value)| std::iter::once(value.as_str()).chain(value.lines()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_core::name::Name;

    fn plan(env: &[(&str, &str)]) -> JobPlan {
        let mut plan = JobPlan::new(Name::new("job").unwrap(), vec!["true".to_owned()]);
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
