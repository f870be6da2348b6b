//! A digest of a table as it is written: parsed, before variables are put in. Two nodes that have the
//! same one know the same job, however it is laid out and whatever their environments are.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The digest of what a table says. It is stable: nodes of different versions compare it.
pub(super) fn of(table: &DeTable<'_>) -> u64 {
    let mut digest = Digest(OFFSET);
    digest.table(table);
    digest.0
}

/// FNV-1a, 64 bits: not meant to withstand anybody who has the key of the fleet.
struct Digest(u64);

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

impl Digest {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }

    /// What follows is of this kind and has so many parts: no two values look alike.
    fn open(&mut self, kind: u8, parts: usize) {
        self.bytes(&[kind]);
        self.bytes(&(parts as u64).to_le_bytes());
    }

    fn text(&mut self, kind: u8, text: &str) {
        self.open(kind, text.len());
        self.bytes(text.as_bytes());
    }

    /// The order of its keys says nothing.
    fn table(&mut self, table: &DeTable<'_>) {
        let mut keys: Vec<(&str, &Spanned<DeValue<'_>>)> =
            table.iter().map(|(key, value)| (key.get_ref().as_ref(), value)).collect();
        keys.sort_by_key(|(key, _)| *key);
        self.open(b't', keys.len());
        for (key, value) in keys {
            self.text(b'k', key);
            self.value(value.get_ref());
        }
    }

    fn value(&mut self, value: &DeValue<'_>) {
        match value {
            DeValue::String(text) => self.text(b's', text),
            DeValue::Integer(number) => self.text(b'i', &number.to_string()),
            DeValue::Float(number) => self.text(b'f', &number.to_string()),
            DeValue::Boolean(truth) => self.open(b'b', usize::from(*truth)),
            DeValue::Datetime(time) => self.text(b'd', &time.to_string()),
            DeValue::Array(values) => {
                self.open(b'a', values.len());
                values.iter().for_each(|value| self.value(value.get_ref()));
            }
            DeValue::Table(table) => self.table(table),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> u64 {
        of(DeTable::parse(text).expect("TOML").get_ref())
    }

    #[test]
    fn what_says_the_same_has_one_digest() {
        let job = digest("exec = ['web', '-p', '80']\nenv = { A = '1', B = '2' }");
        for same in [
            "env = { B = '2', A = '1' }\nexec = ['web', '-p', '80']",
            "# the web\nexec = [\"web\", \"-p\", \"80\"]\n[env]\nA = '1'\nB = '2'",
        ] {
            assert_eq!(digest(same), job, "{same}");
        }
    }

    #[test]
    fn what_says_something_else_has_another() {
        let texts = [
            "exec = 'a b'",
            "exec = ['a', 'b']",
            "exec = ['a b']",
            "exec = ['ab', '']",
            "exec = ['', 'ab']",
            "exec = 'a b'\nmain = true",
            "exec = 'a b'\nmain = false",
            "exec = '${A} b'",
            "a = 1",
            "a = '1'",
            "a = 1.0",
            "a = { b = 1 }",
            "a = [{ b = 1 }]",
        ];
        let mut digests: Vec<u64> = texts.iter().map(|text| digest(text)).collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), texts.len());
    }
}
