//! Texts from outside: what a check prints, a command that cannot be executed. Each is cut once,
//! where it enters, so that nothing that holds them grows with them.

use super::Kind;
use crate::{
    exit::{Exit, KillReason, Usage},
    job::Phase,
    name::Name,
    signal::Signal,
};

/// The longest text, in bytes.
pub const LONGEST: usize = 4096;
const CUT: char = '…';

/// Shortens a text that is too long, and marks it.
pub fn cut(text: &mut String) {
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST - CUT.len_utf8()));
        text.push(CUT);
    }
}

/// About how many bytes a detail of an event takes.
pub(super) trait ByteSize {
    fn weight(&self) -> usize;
}

impl ByteSize for String {
    fn weight(&self) -> usize {
        self.len()
    }
}

impl ByteSize for Name {
    fn weight(&self) -> usize {
        self.as_str().len() + 3
    }
}

impl<T: ByteSize> ByteSize for Vec<T> {
    fn weight(&self) -> usize {
        self.iter().map(ByteSize::weight).sum()
    }
}

impl<T: ByteSize> ByteSize for Option<T> {
    fn weight(&self) -> usize {
        self.as_ref().map_or(4, ByteSize::weight)
    }
}

impl ByteSize for Exit {
    fn weight(&self) -> usize {
        match self {
            Exit::Code { .. } | Exit::Signal { .. } => 32,
            Exit::Error { error, .. } => 32 + error.len(),
        }
    }
}

/// What is short, and always about as long.
macro_rules! short {
    ($($type:ty),+) => {$(
        impl ByteSize for $type {
            fn weight(&self) -> usize {
                16
            }
        }
    )+};
}

short!(bool, u32, u64, usize, Usage, Phase, Signal, KillReason);

impl Kind {
    /// About how many bytes it takes: for those who keep many.
    #[must_use]
    pub fn size(&self) -> usize {
        128 + self.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_a_character_and_marked() {
        let short = "x".repeat(LONGEST);
        let mut text = short.clone();
        cut(&mut text);
        assert_eq!(text, short);
        for width in ["x", "é", "€", "🦀"] {
            let mut text = format!("x{}", width.repeat(LONGEST));
            cut(&mut text);
            assert!(text.len() <= LONGEST && text.len() > LONGEST - 8, "{}", text.len());
            assert!(text.ends_with(CUT));
        }
    }

    #[test]
    fn an_event_weighs_what_its_texts_do() {
        let exit = Exit::Error { error: "e".repeat(4000), errno: 2 };
        assert!(Kind::ExitFailed { incarnation: 1, exit, usage: None }.size() > 4000);
        let added = vec![Name::new(&"a".repeat(60)).expect("a name"); 100];
        let reloaded = Kind::Reloaded { added, changed: Vec::new(), removed: Vec::new() };
        assert!(reloaded.size() > 6000);
        assert!(Kind::Startup.size() < 256);
    }
}
