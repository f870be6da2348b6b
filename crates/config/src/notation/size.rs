//! Sizes in bytes: `512`, `64K`, `10M`, `1G`, `2T`, in powers of 1024.

/// `None`: not a size.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let shift = match text.as_bytes().last()? {
        b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        b'T' => 40,
        _ => 0,
    };
    let number = if shift == 0 { text } else { text.get(..text.len() - 1)? };
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("64K", 65_536),
            ("10M", 10 << 20),
            ("1G", 1 << 30),
            ("2T", 2 << 40),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_size_is_refused() {
        for text in ["", "K", "1.5G", "-1M", "+1", "1 M", "10MB", "10m", "99999999999T", "é", "1é"]
        {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
