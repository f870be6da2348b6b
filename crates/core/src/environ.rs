//! Variables that users have changed for whatever is started from now on.
//!
//! They lie over the environment that the node was started with and under a job's own `env`. A
//! variable is set, or taken away even if the node was started with it. Bounded: it travels with
//! every start.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// So many bytes of names and values altogether.
pub const MOST_BYTES: usize = 64 << 10;
/// So many variables.
pub const MOST: usize = 512;
const LONGEST_NAME: usize = 256;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Environ(BTreeMap<String, Option<String>>);

/// Why a variable cannot be changed. Nothing was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error(
        "'{0}' is not a name for a variable: use letters, digits and '_', not starting with a digit"
    )]
    Name(String),
    #[error("the value of {0} holds a NUL character: no program can be given one")]
    Nul(String),
    #[error("too much: at most {MOST} variables of {MOST_BYTES} bytes altogether can be changed")]
    TooMuch,
}

impl Environ {
    /// Sets (`Some`) and takes away (`None`): all of it, or nothing.
    ///
    /// # Errors
    /// What does not fit.
    pub fn change(&mut self, changes: BTreeMap<String, Option<String>>) -> Result<(), Unfit> {
        for (name, value) in &changes {
            if !is_name(name) {
                return Err(Unfit::Name(name.chars().take(LONGEST_NAME).collect()));
            }
            if value.as_ref().is_some_and(|value| value.contains('\0')) {
                return Err(Unfit::Nul(name.clone()));
            }
        }
        let mut changed = self.0.clone();
        changed.extend(changes);
        let size = |(name, value): (&String, &Option<String>)| {
            name.len() + value.as_ref().map_or(0, String::len)
        };
        if changed.len() > MOST || changed.iter().map(size).sum::<usize>() > MOST_BYTES {
            return Err(Unfit::TooMuch);
        }
        self.0 = changed;
        Ok(())
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// By name; `None`: taken away.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_deref()))
    }

    /// An environment with these changes made to it.
    pub fn lay_over(&self, env: &mut BTreeMap<String, String>) {
        for (name, value) in &self.0 {
            match value {
                Some(value) => drop(env.insert(name.clone(), value.clone())),
                None => drop(env.remove(name)),
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    text.len() <= LONGEST_NAME
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(pairs: &[(&str, Option<&str>)]) -> BTreeMap<String, Option<String>> {
        pairs.iter().map(|(name, value)| ((*name).into(), value.map(Into::into))).collect()
    }

    #[test]
    fn what_is_set_replaces_and_what_is_taken_away_is_gone() {
        let mut environ = Environ::default();
        environ.change(changes(&[("A", Some("1")), ("B", Some("2")), ("C", None)])).expect("fits");
        environ.change(changes(&[("B", None), ("D", Some(""))])).expect("fits");
        let mut env = [("B", "old"), ("C", "old"), ("E", "old")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        environ.lay_over(&mut env);
        let left: Vec<_> =
            env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(left, [("A", "1"), ("D", ""), ("E", "old")]);
    }

    #[test]
    fn one_unfit_variable_keeps_all_of_them_out() {
        let mut environ = Environ::default();
        for (name, value, expected) in [
            ("", "x", Unfit::Name(String::new())),
            ("1A", "x", Unfit::Name("1A".into())),
            ("A=B", "x", Unfit::Name("A=B".into())),
            ("A B", "x", Unfit::Name("A B".into())),
            ("Ä", "x", Unfit::Name("Ä".into())),
            ("A", "x\0y", Unfit::Nul("A".into())),
        ] {
            let both = changes(&[("GOOD", Some("1")), (name, Some(value))]);
            assert_eq!(environ.change(both), Err(expected));
            assert!(environ.is_empty());
        }
        let long = "x".repeat(MOST_BYTES);
        assert_eq!(environ.change(changes(&[("A", Some(&long))])), Err(Unfit::TooMuch));
        let many = (0..=MOST).map(|n| (format!("V{n}"), None)).collect();
        assert_eq!(environ.change(many), Err(Unfit::TooMuch));
        assert!(environ.is_empty());
    }
}
