//! What nodes say and send, as text and back.

use crate::seeds;
use mainstay_core::{
    fleet::{JobOrder, Message, NodeFacts, Number, OrderKind, Term},
    name::Name,
};
use proptest::prelude::*;
use serde_json::Value;
use std::time::Duration;

/// A field that a later version may have, in everything that has fields.
fn add_later_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(add_later_fields);
            // An object with one capital or small word is a variant, one with names may be a map.
            if fields.contains_key("run") || fields.contains_key("counter") {
                fields.insert("later".to_owned(), Value::from("than this"));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(add_later_fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn whatever_a_node_says_is_the_same_for_whoever_reads_it() {
    let mut read = 0;
    for seed in 0..3 {
        let mut world = seeds::world(seed);
        for second in (1..90).step_by(2) {
            world.run_until(Duration::from_secs(second));
            for facts in world.facts() {
                let mut text = serde_json::to_value(&**facts).expect("it is text");
                let back: NodeFacts = serde_json::from_value(text.clone()).expect("it is read");
                assert_eq!(back, **facts);
                add_later_fields(&mut text);
                let back: NodeFacts = serde_json::from_value(text).expect("it is read");
                assert_eq!(back, **facts, "with fields of a later version");
                read += usize::from(facts.work.is_some());
            }
        }
    }
    assert!(read > 50, "masters say what they have in hand");
}

fn names() -> impl Strategy<Value = Name> {
    "[A-Za-z0-9][A-Za-z0-9_-]{0,62}".prop_filter_map("reserved", |text| Name::new(&text).ok())
}

fn orders() -> impl Strategy<Value = JobOrder> {
    let start = (proptest::collection::vec(".*", 0..4), any::<bool>())
        .prop_map(|(args, fails_over)| OrderKind::Start { args, fails_over });
    let what = prop_oneof![start, Just(OrderKind::Stop)];
    (any::<u64>(), names(), any::<u64>(), names(), what).prop_map(
        |(term, master, counter, job, what)| JobOrder {
            number: Number { term: Term { number: term, master }, counter },
            job,
            what,
        },
    )
}

proptest! {
    #[test]
    fn whatever_a_node_is_sent_is_the_same_when_it_is_read(order in orders()) {
        let message = Message::Order(order);
        let text = serde_json::to_string(&message).expect("it is text");
        prop_assert_eq!(serde_json::from_str::<Message>(&text).expect("it is read"), message);
    }
}
