//! The orders of a master that are not done: one at most for a job on a node.

use crate::{
    clock::Mono,
    fleet::{Number, OrderKind, Shared},
    name::Name,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// An order is for one job on one node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct OrderKey {
    pub(super) job: Name,
    pub(super) node: Name,
}

/// An order that is not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenOrder {
    pub number: Number,
    pub what: OrderKind,
    pub since: Mono,
    /// Its node has taken it.
    pub taken: bool,
}

/// By job, then by node. It is sent as a list of pairs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenOrders(Shared<BTreeMap<Name, BTreeMap<Name, OpenOrder>>>);

impl OpenOrders {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    /// By job, then by node.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Name, &OpenOrder)> {
        self.0.iter().flat_map(|(job, nodes)| nodes.iter().map(move |(node, it)| (job, node, it)))
    }

    /// Those for one job, by node.
    pub fn of<'a>(
        &'a self,
        job: &Name,
    ) -> impl Iterator<Item = (&'a Name, &'a OpenOrder)> + use<'a> {
        self.0.get(job).into_iter().flatten()
    }

    #[must_use]
    pub fn has(&self, job: &Name) -> bool {
        self.0.contains_key(job)
    }

    #[must_use]
    pub fn get(&self, job: &Name, node: &Name) -> Option<&OpenOrder> {
        self.0.get(job)?.get(node)
    }

    pub(super) fn keys(&self) -> Vec<OrderKey> {
        let key =
            |(job, node, _): (&Name, &Name, _)| OrderKey { job: job.clone(), node: node.clone() };
        self.iter().map(key).collect()
    }

    pub(super) fn insert(&mut self, key: OrderKey, order: OpenOrder) {
        self.0.edit().entry(key.job).or_default().insert(key.node, order);
    }

    pub(super) fn edit(&mut self, key: &OrderKey) -> Option<&mut OpenOrder> {
        self.0.edit().get_mut(&key.job)?.get_mut(&key.node)
    }

    pub(super) fn remove(&mut self, key: &OrderKey) {
        if self.get(&key.job, &key.node).is_none() {
            return;
        }
        let orders = self.0.edit();
        if let Some(nodes) = orders.get_mut(&key.job) {
            nodes.remove(&key.node);
            if nodes.is_empty() {
                orders.remove(&key.job);
            }
        }
    }
}

impl Serialize for OpenOrders {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter().map(|(job, node, order)| (KeyRef { job, node }, order)))
    }
}

/// An [`OrderKey`] as it is sent.
#[derive(Serialize)]
struct KeyRef<'a> {
    job: &'a Name,
    node: &'a Name,
}

impl<'de> Deserialize<'de> for OpenOrders {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<OpenOrders, D::Error> {
        let mut orders = OpenOrders::default();
        for (key, order) in Vec::<(OrderKey, OpenOrder)>::deserialize(from)? {
            orders.insert(key, order);
        }
        Ok(orders)
    }
}
