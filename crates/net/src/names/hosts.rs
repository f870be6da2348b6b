//! `/etc/hosts`: an address a line, then its names.

use std::net::IpAddr;

/// The addresses of a name, in the order of the file.
pub(super) fn find(text: &str, host: &str) -> Vec<IpAddr> {
    let host = host.strip_suffix('.').unwrap_or(host);
    let of_line = |line: &str| {
        let mut words = line.split('#').next()?.split_ascii_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|name| name.eq_ignore_ascii_case(host)).then_some(address)
    };
    text.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whatever_their_case_and_comments_are_not() {
        let text = "127.0.0.1 a\n10.0.0.1\tdb DB.example # c\nnonsense db\n::1 db\n";
        assert_eq!(
            find(text, "db"),
            ["10.0.0.1", "::1"].map(|it| it.parse::<IpAddr>().expect("a number"))
        );
        assert_eq!(find(text, "db.EXAMPLE.").len(), 1);
        assert!(find(text, "c").is_empty());
    }
}
