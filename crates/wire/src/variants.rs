//! The names of an enum's variants, as its own reader knows them.

use serde::{
    Deserialize, Deserializer,
    de::{Visitor, value::Error},
    forward_to_deserialize_any,
};

/// What a message of this type may be called.
#[must_use]
pub(crate) fn names<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut found: &'static [&'static str] = &[];
    // It reads nothing, so it always fails, after it has said what it would read.
    let _ = T::deserialize(Names(&mut found));
    found
}

struct Names<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(serde::de::Error::custom("no enum"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = variants;
        Err(serde::de::Error::custom("only its names were asked for"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_are_written() {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[expect(dead_code, reason = "only its names are asked for")]
        enum Sample {
            FirstOne(u8),
            Second { more: u8 },
        }
        assert_eq!(names::<Sample>(), ["first_one", "second"]);
        assert_eq!(names::<u8>(), [] as [&str; 0]);
    }
}
