//! Which keys of a host match a pattern: asked once for all hosts that have the same keys, and of thousands
//! of hosts of one make nearly all have.
//!
//! The facts of all hosts come in, keys go out, in the order in which a host has them. Values are never
//! looked at.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use linerate_knowledge::keys::{nic_of, pattern_fits};
use linerate_model::fact::HostFacts;

/// Facts of a namespace inside a host begin with this.
const NAMESPACE: &str = "netns.";

/// The sets of keys that occur.
#[derive(Default)]
pub(crate) struct Layouts<'a> {
    all: Vec<Layout<'a>>,
    /// Layouts by the list of keys that they share.
    by_list: HashMap<usize, usize>,
    /// Layouts by a hash of their keys.
    by_hash: HashMap<u64, Vec<usize>>,
}

struct Layout<'a> {
    /// A host that has these keys.
    model: &'a HostFacts,
    /// Patterns that were asked for.
    asked: RefCell<HashMap<String, Rc<[&'a str]>>>,
}

impl<'a> Layouts<'a> {
    /// The number of the layout of a host; the same for two hosts with the same keys.
    pub(crate) fn number(&mut self, facts: &'a HostFacts) -> usize {
        let list = facts.readings.key_list();
        if let Some(number) = self.by_list.get(&list) {
            return *number;
        }
        let number = self.search(facts);
        self.by_list.insert(list, number);
        number
    }

    /// The same for keys that were not seen as this list.
    fn search(&mut self, facts: &'a HostFacts) -> usize {
        let mut hasher = DefaultHasher::new();
        facts.readings.keys().for_each(|key| key.hash(&mut hasher));
        let layouts = &mut self.all;
        let same = self.by_hash.entry(hasher.finish()).or_default();
        if let Some(number) =
            same.iter().find(|n| layouts[**n].model.readings.keys().eq(facts.readings.keys()))
        {
            return *number;
        }
        layouts.push(Layout { model: facts, asked: RefCell::default() });
        same.push(layouts.len() - 1);
        layouts.len() - 1
    }

    /// Keys of a layout that match the pattern, those of namespaces first. The loopback is left out.
    pub(crate) fn matching(&self, number: usize, pattern: &str) -> Rc<[&'a str]> {
        let Some(layout) = self.all.get(number) else { return Rc::from([]) };
        if let Some(known) = layout.asked.borrow().get(pattern) {
            return Rc::clone(known);
        }
        let found: Rc<[&str]> = layout.search(pattern).into();
        layout.asked.borrow_mut().insert(pattern.to_owned(), Rc::clone(&found));
        found
    }
}

impl<'a> Layout<'a> {
    fn search(&self, pattern: &str) -> Vec<&'a str> {
        let start = pattern.split('*').next().unwrap_or("");
        let readings = &self.model.readings;
        readings
            .beginning_with(NAMESPACE)
            .chain(readings.beginning_with(start))
            .map(|(key, _)| key.as_str())
            .filter(|key| pattern_fits(pattern, key) && nic_of(key) != Some("lo"))
            .collect()
    }
}
