//! Values that the journal holds: they remember what they were before a step has changed them, so
//! that a record is made of what has changed, and of nothing else.
//!
//! To read one is to read what is in it; to change one is to say so (`edit`).

use crate::name::Name;
use std::{collections::BTreeMap, ops::Deref};

/// One value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journaled<T> {
    value: T,
    /// What the journal has of it, if it was edited since.
    before: Option<T>,
}

/// Values by name, each journaled by itself.
#[derive(Debug, Clone)]
pub(crate) struct JournaledMap<T> {
    values: BTreeMap<Name, T>,
    /// What the journal has of those that were edited since; `None`: nothing.
    before: BTreeMap<Name, Option<T>>,
}

impl<T: Clone + PartialEq> Journaled<T> {
    /// One that the journal has like this.
    pub(crate) fn new(value: T) -> Journaled<T> {
        Journaled { value, before: None }
    }

    pub(crate) fn edit(&mut self) -> &mut T {
        self.before.get_or_insert_with(|| self.value.clone());
        &mut self.value
    }

    /// The value, if it is not what the journal has. From now on it is.
    pub(crate) fn take_change(&mut self) -> Option<&T> {
        let before = self.before.take()?;
        (before != self.value).then_some(&self.value)
    }
}

impl<T> Deref for Journaled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Clone + PartialEq> JournaledMap<T> {
    /// As the journal has it.
    pub(crate) fn new(values: BTreeMap<Name, T>) -> JournaledMap<T> {
        JournaledMap { values, before: BTreeMap::new() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.values.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Name, &T)> {
        self.values.iter()
    }

    pub(crate) fn edit(&mut self, name: &str) -> Option<&mut T> {
        let (key, value) = self.values.get_key_value(name)?;
        self.before.entry(key.clone()).or_insert_with(|| Some(value.clone()));
        self.values.get_mut(name)
    }

    pub(crate) fn insert(&mut self, name: Name, value: T) {
        let before = self.values.insert(name.clone(), value);
        self.before.entry(name).or_insert(before);
    }

    pub(crate) fn remove(&mut self, name: &Name) -> Option<T> {
        let before = self.values.remove(name)?;
        self.before.entry(name.clone()).or_insert_with(|| Some(before.clone()));
        Some(before)
    }

    pub(crate) fn clear(&mut self) {
        for (name, value) in std::mem::take(&mut self.values) {
            self.before.entry(name).or_insert(Some(value));
        }
    }

    /// The journal has it as well, or need not be told.
    pub(crate) fn insert_known(&mut self, name: Name, value: T) {
        self.values.insert(name, value);
    }

    /// As `remove`, for what the journal forgets by itself.
    pub(crate) fn retain_known(&mut self, mut is_kept: impl FnMut(&Name) -> bool) {
        self.values.retain(|name, _| is_kept(name));
        self.before.retain(|name, _| is_kept(name));
    }

    /// Nothing of it is in a journal yet.
    pub(crate) fn begin(&mut self) {
        self.before.extend(self.values.keys().map(|name| (name.clone(), None)));
    }

    /// What is not as the journal has it; `None`: it is gone. From now on it is.
    pub(crate) fn take_changes(&mut self) -> Vec<(Name, Option<T>)> {
        let edited = std::mem::take(&mut self.before).into_iter();
        let changed = edited.filter(|(name, before)| self.values.get(name) != before.as_ref());
        changed.map(|(name, _)| (name.clone(), self.values.get(&name).cloned())).collect()
    }
}

impl<T> Default for JournaledMap<T> {
    fn default() -> JournaledMap<T> {
        JournaledMap { values: BTreeMap::new(), before: BTreeMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    #[test]
    fn only_what_is_other_than_before_has_changed() {
        let mut value = Journaled::new(1);
        assert_eq!(value.take_change(), None);
        *value.edit() = 2;
        assert_eq!(value.take_change(), Some(&2));
        *value.edit() = 3;
        *value.edit() = 2;
        assert_eq!(value.take_change(), None);
    }

    #[test]
    fn each_name_has_changed_by_itself() {
        let mut map = JournaledMap::new(BTreeMap::from([(name("a"), 1), (name("b"), 2)]));
        map.insert(name("a"), 1);
        map.insert(name("c"), 3);
        map.insert(name("d"), 4);
        map.remove(&name("d"));
        map.edit("b").into_iter().for_each(|it| *it += 1);
        assert_eq!(map.take_changes(), [(name("b"), Some(3)), (name("c"), Some(3))]);
        map.clear();
        map.insert(name("b"), 3);
        assert_eq!(map.take_changes(), [(name("a"), None), (name("c"), None)]);
        map.begin();
        map.insert_known(name("e"), 5);
        assert_eq!(map.take_changes(), [(name("b"), Some(3))]);
    }
}
