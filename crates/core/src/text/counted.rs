//! Numbers with what they count.

use std::fmt::Display;

/// `1 line`, `2 lines`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, one: &str, more: &str) -> String {
    match count == N::from(1) {
        true => format!("{count} {one}"),
        false => format!("{count} {more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one_and_none_are_many() {
        let jobs = |count: usize| counted(count, "job runs", "jobs run");
        assert_eq!([jobs(0), jobs(1), jobs(2)], ["0 jobs run", "1 job runs", "2 jobs run"]);
    }
}
