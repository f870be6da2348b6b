//! How an event is read: in one pass, as it stands in a journal, whatever the order of its fields.
//!
//! An agent that takes over reads thousands of them before it answers anybody. What serde makes of
//! `flatten` and `untagged` would put each into a tree of values first.

use super::{Event, GlobalWord, Kind, Source, WatchWord};
use crate::{name::Name, plan::RolloutSource, text};
use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor, value::MapAccessDeserializer,
    },
};
use std::fmt;

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Event, D::Error> {
        deserializer.deserialize_map(EventVisitor)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = Event;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event, A::Error> {
        let mut head = Head::default();
        let rest = KindFields { map: &mut map, head: &mut head };
        let kind = Kind::deserialize(MapAccessDeserializer::new(rest))?;
        let missing = A::Error::missing_field;
        Ok(Event {
            seq: head.seq.ok_or_else(|| missing("seq"))?,
            time: head.time.ok_or_else(|| missing("time"))?,
            source: head.source.ok_or_else(|| missing("source"))?,
            kind,
        })
    }
}

/// What every event has.
#[derive(Default)]
struct Head {
    seq: Option<u64>,
    time: Option<i64>,
    source: Option<Source>,
}

/// The fields of an event that are of its kind; the others are put aside on the way.
struct KindFields<'a, A> {
    map: &'a mut A,
    head: &'a mut Head,
}

enum Field<T> {
    Seq,
    Time,
    Source,
    OfKind(T),
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for KindFields<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let mut seed = Some(seed);
        loop {
            match self.map.next_key_seed(FieldSeed(&mut seed))? {
                None => return Ok(None),
                Some(Field::Seq) => self.head.seq = Some(self.map.next_value()?),
                Some(Field::Time) => self.head.time = Some(self.map.next_value()?),
                Some(Field::Source) => self.head.source = Some(self.map.next_value()?),
                Some(Field::OfKind(key)) => return Ok(Some(key)),
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Reads a key. What is of the kind is read by whoever asks for it, once.
struct FieldSeed<'a, K>(&'a mut Option<K>);

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for FieldSeed<'_, K> {
    type Value = Field<K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<'de, K: DeserializeSeed<'de>> Visitor<'de> for FieldSeed<'_, K> {
    type Value = Field<K::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        match (key, self.0.take()) {
            ("seq", seed) => Ok(self.put_back(seed, Field::Seq)),
            ("time", seed) => Ok(self.put_back(seed, Field::Time)),
            ("source", seed) => Ok(self.put_back(seed, Field::Source)),
            (key, Some(seed)) => seed.deserialize(key.into_deserializer()).map(Field::OfKind),
            (_, None) => Err(E::custom("a field was asked for twice")),
        }
    }
}

impl<K> FieldSeed<'_, K> {
    fn put_back<T>(self, seed: Option<K>, field: Field<T>) -> Field<T> {
        *self.0 = seed;
        field
    }
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Source, D::Error> {
        text::parse(
            deserializer,
            "the name of a job, global, watch.NAME, profile.NAME or template.NAME",
            |text| {
                if text == Source::NODE.as_str() {
                    return Ok(Source::Node(GlobalWord::Global));
                }
                match Name::new(text) {
                    Ok(job) => Ok(Source::Job(job)),
                    Err(_) => match RolloutSource::parse(text) {
                        Some(source) => Ok(Source::rollout(&source)),
                        None => WatchWord::try_from(text.to_owned()).map(Source::Watch),
                    },
                }
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_as_it_was_written_whatever_the_order() {
        let name = Name::new("web").expect("a name");
        let (check, passing, output) = ("up".to_owned(), false, "refused".to_owned());
        let kinds = [
            (Source::NODE, Kind::Startup),
            (Source::watch(&name), Kind::Changed { instances: Some(3), version: None }),
            (Source::Job(name), Kind::Check { name: check, passing, output }),
        ];
        for (source, kind) in kinds {
            let event = Event { seq: 7, time: -1, source, kind };
            let written = serde_json::to_value(&event).expect("JSON");
            assert_eq!(Event::deserialize(&written).expect("an event"), event);
            let fields = written.as_object().expect("an object").iter().rev();
            let fields: Vec<String> =
                fields.map(|(key, value)| format!("{key:?}:{value}")).collect();
            let text = format!("{{{},\"more\":{{}}}}", fields.join(","));
            assert_eq!(serde_json::from_str::<Event>(&text).expect(&text), event);
        }
    }

    #[test]
    fn what_is_no_event_is_refused() {
        for text in [
            r#"{"time":0,"source":"global","event":"startup"}"#,
            r#"{"seq":1,"time":0,"source":"a b","event":"startup"}"#,
            r#"{"seq":1,"time":0,"source":"global","event":"never heard of"}"#,
            r#"{"seq":1,"time":0,"source":"global"}"#,
            r#"[1,0,"global","startup"]"#,
        ] {
            assert!(serde_json::from_str::<Event>(text).is_err(), "{text}");
        }
    }
}
