//! Who is master, where no engine says so: on the mesh.
//!
//! | claims among those that take part | master |
//! |---|---|
//! | none | the first of them: core nodes first, then the smallest name |
//! | one | the one that claims, whoever else has come meanwhile |
//! | several (a cut has healed) | the first of those that claim |
//!
//! A master takes a new term when it hears of a higher one, so that all obey it.
//!
//! A node is master when it claims a term of its own. The others follow a claim, they never make
//! one for somebody else: until the first has claimed there is none. Nor does anybody claim while
//! one of those that take part follows a master that the others do not see: it may be the last to
//! notice that the master is gone, or the first that a newcomer has met.

use super::Term;
use crate::name::Name;
use std::collections::{BTreeMap, BTreeSet};

/// The election as one node sees it.
#[derive(Debug, Clone)]
pub struct Election {
    me: Name,
    /// The highest term seen so far.
    highest: Option<Term>,
    /// The term that each node follows, as it has said.
    claims: BTreeMap<Name, Term>,
    /// The term that this node follows.
    term: Option<Term>,
}

impl Election {
    #[must_use]
    pub fn new(me: Name, highest: Option<Term>) -> Election {
        Election { me, highest, claims: BTreeMap::new(), term: None }
    }

    /// Another node has said which term it follows, and the highest that it has seen.
    pub fn heard(&mut self, node: &Name, term: Option<&Term>, highest: Option<&Term>) {
        if highest > self.highest.as_ref() {
            self.highest = highest.cloned();
        }
        match term {
            Some(term) => drop(self.claims.insert(node.clone(), term.clone())),
            None => drop(self.claims.remove(node)),
        }
    }

    /// Decides whom this node follows. `None`: the first of them has not claimed yet.
    pub fn decide(&mut self, among: &BTreeSet<Name>, core: &BTreeSet<Name>) -> Option<&Term> {
        self.term = self.chosen(among, core);
        self.term.as_ref()
    }

    fn chosen(&mut self, among: &BTreeSet<Name>, core: &BTreeSet<Name>) -> Option<Term> {
        let first = |nodes: &mut dyn Iterator<Item = &Name>| {
            nodes.min_by_key(|node| (!core.contains(*node), (*node).clone())).cloned()
        };
        let mut claimed: BTreeMap<Name, Term> = BTreeMap::new();
        let mine = self.term.iter().filter(|term| term.master == self.me);
        let heard = || self.claims.iter().filter(|(node, _)| among.contains(*node));
        let own = heard().filter(|(node, term)| **node == term.master);
        for term in own.map(|(_, term)| term).chain(mine) {
            claimed.insert(term.master.clone(), term.clone());
        }
        // Somebody still hears of a master that this node does not: it is gone, or about to come.
        let unseen = heard().any(|(node, term)| *node != self.me && !among.contains(&term.master));
        let Some(master) = first(&mut claimed.keys()) else {
            let master = first(&mut among.iter()).filter(|it| *it == self.me && !unseen);
            return master.map(|_| self.next());
        };
        let term = claimed.remove(&master)?;
        // Whoever has seen a higher term would not obey.
        let below = Some(&term) < self.highest.as_ref();
        Some(if master == self.me && below && !unseen { self.next() } else { term })
    }

    fn next(&mut self) -> Term {
        let number = self.highest.as_ref().map_or(0, |it| it.number) + 1;
        let term = Term { number, master: self.me.clone() };
        self.highest = Some(term.clone());
        term
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    fn names(text: &str) -> BTreeSet<Name> {
        text.split_whitespace().map(name).collect()
    }

    fn term(number: u64, master: &str) -> Term {
        Term { number, master: name(master) }
    }

    #[test]
    fn the_smallest_name_claims_and_the_others_wait_for_it() {
        let all = names("a b c");
        let mut a = Election::new(name("a"), Some(term(6, "z")));
        let mut b = Election::new(name("b"), None);
        assert_eq!(b.decide(&all, &names("")), None);
        assert_eq!(a.decide(&all, &names("")), Some(&term(7, "a")));
        b.heard(&name("a"), Some(&term(7, "a")), Some(&term(7, "a")));
        assert_eq!(b.decide(&all, &names("")), Some(&term(7, "a")));
    }

    #[test]
    fn a_core_node_goes_before_a_smaller_name() {
        let mut c = Election::new(name("c"), None);
        assert_eq!(c.decide(&names("a b c"), &names("c")), Some(&term(1, "c")));
    }

    #[test]
    fn an_existing_master_is_kept() {
        let mut a = Election::new(name("a"), None);
        a.heard(&name("b"), Some(&term(3, "b")), Some(&term(3, "b")));
        a.heard(&name("c"), Some(&term(3, "b")), Some(&term(3, "b")));
        assert_eq!(a.decide(&names("a b c"), &names("")), Some(&term(3, "b")));
        // It is gone: as soon as nobody follows it any more there is a new one.
        assert_eq!(a.decide(&names("a c"), &names("")), None);
        a.heard(&name("c"), None, None);
        assert_eq!(a.decide(&names("a c"), &names("")), Some(&term(4, "a")));
    }

    #[test]
    fn of_two_masters_the_smaller_name_stays_under_a_term_above_both() {
        let all = names("a b c d");
        let mut a = Election::new(name("a"), None);
        let mut c = Election::new(name("c"), Some(term(4, "z")));
        a.decide(&names("a b"), &names(""));
        c.decide(&names("c d"), &names(""));
        a.heard(&name("c"), Some(&term(5, "c")), Some(&term(5, "c")));
        c.heard(&name("a"), Some(&term(1, "a")), Some(&term(1, "a")));
        assert_eq!(a.decide(&all, &names("")), Some(&term(6, "a")));
        assert_eq!(c.decide(&all, &names("")), Some(&term(1, "a")));
        c.heard(&name("a"), Some(&term(6, "a")), Some(&term(6, "a")));
        assert_eq!(c.decide(&all, &names("")), Some(&term(6, "a")));
        // And it takes no further one while the other is still heard of.
        assert_eq!(a.decide(&all, &names("")), Some(&term(6, "a")));
    }

    #[test]
    fn of_two_masters_the_core_one_stays() {
        let mut a = Election::new(name("a"), None);
        a.decide(&names("a"), &names("c"));
        a.heard(&name("c"), Some(&term(9, "c")), Some(&term(9, "c")));
        assert_eq!(a.decide(&names("a c"), &names("c")), Some(&term(9, "c")));
    }
}
