//! The readings of a host: keys in order, each with its value. Hosts of one make have the same keys; of
//! thousands of hosts they are kept once ([`KeyLists`]), so that a host costs little more than its values.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fact::{FactKey, FactValue};

/// Values by key, in the order of the keys. Written as a JSON object.
#[derive(Clone, Default)]
pub struct FactMap {
    /// In order, each once.
    keys: Arc<Vec<FactKey>>,
    /// One for each key.
    values: Vec<FactValue>,
}

impl FactMap {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&FactValue> {
        self.values.get(self.place(key).ok()?)
    }

    /// Whether there is a value.
    pub fn contains_key(&self, key: &str) -> bool {
        self.place(key).is_ok()
    }

    /// Sets a value; gives the one before.
    pub fn insert(&mut self, key: FactKey, value: FactValue) -> Option<FactValue> {
        match self.place(&key) {
            Ok(place) => Some(std::mem::replace(&mut self.values[place], value)),
            Err(place) => {
                Arc::make_mut(&mut self.keys).insert(place, key);
                self.values.insert(place, value);
                None
            }
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// All keys with their values.
    pub fn iter(&self) -> Iter<'_> {
        self.keys.iter().zip(&self.values)
    }

    /// The same from the first key on that is not before `start`.
    pub fn starting_at(&self, start: &str) -> Iter<'_> {
        let place = self.place(start).unwrap_or_else(|place| place);
        self.keys[place..].iter().zip(&self.values[place..])
    }

    /// Those whose keys begin so.
    pub fn beginning_with<'m, 'p>(
        &'m self,
        prefix: &'p str,
    ) -> impl Iterator<Item = (&'m FactKey, &'m FactValue)> + use<'m, 'p> {
        self.starting_at(prefix).take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// All keys.
    pub fn keys(&self) -> std::slice::Iter<'_, FactKey> {
        self.keys.iter()
    }

    /// All values.
    pub fn values(&self) -> std::slice::Iter<'_, FactValue> {
        self.values.iter()
    }

    /// Keeps only those for which `keep` says yes.
    pub fn retain(&mut self, mut keep: impl FnMut(&FactKey, &FactValue) -> bool) {
        let all = std::mem::take(self);
        *self = all.into_iter().filter(|(key, value)| keep(key, value)).collect();
    }

    /// Names the list of keys: the same number for two maps that share theirs. Only as long as both are
    /// there.
    pub fn key_list(&self) -> usize {
        Arc::as_ptr(&self.keys).addr()
    }

    /// A map of keys that are in order already, each once; `None` when they are not, or when there is not one
    /// value for each.
    pub fn of_lists(keys: Arc<Vec<FactKey>>, values: Vec<FactValue>) -> Option<Self> {
        let sound = keys.len() == values.len() && keys.is_sorted_by(|a, b| a < b);
        sound.then_some(Self { keys, values })
    }

    fn place(&self, key: &str) -> Result<usize, usize> {
        self.keys.binary_search_by(|known| known.as_str().cmp(key))
    }
}

/// Keys with their values, in order.
pub type Iter<'a> = std::iter::Zip<std::slice::Iter<'a, FactKey>, std::slice::Iter<'a, FactValue>>;

impl std::fmt::Debug for FactMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl PartialEq for FactMap {
    fn eq(&self, other: &Self) -> bool {
        (Arc::ptr_eq(&self.keys, &other.keys) || self.keys == other.keys) && self.values == other.values
    }
}

impl std::ops::Index<&str> for FactMap {
    type Output = FactValue;

    fn index(&self, key: &str) -> &FactValue {
        self.get(key).unwrap_or_else(|| panic!("no fact {key}"))
    }
}

impl<'a> IntoIterator for &'a FactMap {
    type Item = (&'a FactKey, &'a FactValue);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl IntoIterator for FactMap {
    type Item = (FactKey, FactValue);
    type IntoIter = std::iter::Zip<std::vec::IntoIter<FactKey>, std::vec::IntoIter<FactValue>>;

    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.keys).into_iter().zip(self.values)
    }
}

impl Extend<(FactKey, FactValue)> for FactMap {
    fn extend<T: IntoIterator<Item = (FactKey, FactValue)>>(&mut self, more: T) {
        let all = std::mem::take(self);
        *self = all.into_iter().chain(more).collect();
    }
}

/// Of two values of a key the later one counts.
impl FromIterator<(FactKey, FactValue)> for FactMap {
    fn from_iter<T: IntoIterator<Item = (FactKey, FactValue)>>(pairs: T) -> Self {
        let mut pairs: Vec<(FactKey, FactValue)> = pairs.into_iter().collect();
        if !pairs.is_sorted_by(|a, b| a.0 < b.0) {
            pairs = pairs.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect();
        }
        let (mut keys, values): (Vec<FactKey>, Vec<FactValue>) = pairs.into_iter().unzip();
        keys.shrink_to_fit();
        Self { keys: Arc::new(keys), values: values.into_boxed_slice().into_vec() }
    }
}

impl From<BTreeMap<FactKey, FactValue>> for FactMap {
    fn from(map: BTreeMap<FactKey, FactValue>) -> Self {
        map.into_iter().collect()
    }
}

impl<const N: usize> From<[(FactKey, FactValue); N]> for FactMap {
    fn from(pairs: [(FactKey, FactValue); N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl Serialize for FactMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for FactMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = FactMap;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("values by key")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FactMap, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(pairs.into_iter().collect())
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// Lists of keys that several hosts have.
#[derive(Debug, Default)]
pub struct KeyLists(HashMap<u64, Vec<Arc<Vec<FactKey>>>>);

impl KeyLists {
    /// Lets a map share its keys with those that came before.
    pub fn share(&mut self, map: &mut FactMap) {
        let mut hasher = DefaultHasher::new();
        map.keys.hash(&mut hasher);
        let known = self.0.entry(hasher.finish()).or_default();
        match known.iter().find(|keys| **keys == map.keys) {
            Some(keys) => map.keys = Arc::clone(keys),
            None => known.push(Arc::clone(&map.keys)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, i64)]) -> FactMap {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), FactValue::Int(*value))).collect()
    }

    #[test]
    fn keys_are_in_order_and_the_later_value_counts() {
        let mut facts = map(&[("b", 1), ("a", 2), ("b", 3)]);
        assert_eq!(facts, map(&[("a", 2), ("b", 3)]));
        assert_eq!(facts.insert("ab".to_owned(), FactValue::Int(4)), None);
        assert_eq!(facts.insert("a".to_owned(), FactValue::Int(5)), Some(FactValue::Int(2)));
        assert_eq!(facts, map(&[("a", 5), ("ab", 4), ("b", 3)]));
        assert_eq!(facts.starting_at("aa").map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["ab", "b"]);
        assert_eq!(facts.beginning_with("a").count(), 2);
        facts.retain(|key, _| key != "ab");
        facts.extend([("0".to_owned(), FactValue::Int(6))]);
        assert_eq!(facts, map(&[("0", 6), ("a", 5), ("b", 3)]));
        assert_eq!((facts.get("c"), facts.contains_key("a"), facts.len()), (None, true, 3));
    }

    #[test]
    fn it_is_written_as_an_object() {
        let facts = map(&[("a", 2), ("b", 3)]);
        let text = serde_json::to_string(&facts).unwrap();
        assert_eq!(text, r#"{"a":2,"b":3}"#);
        assert_eq!(serde_json::from_str::<FactMap>(r#"{"b":3,"a":1,"a":2}"#).unwrap(), facts);
        assert!(serde_json::from_str::<FactMap>("[]").is_err());
    }

    #[test]
    fn shared_keys_are_parted_when_one_changes() {
        let (mut lists, mut one, mut two) = (KeyLists::default(), map(&[("a", 1)]), map(&[("a", 2)]));
        assert_ne!(one.key_list(), two.key_list());
        lists.share(&mut one);
        lists.share(&mut two);
        assert_eq!(one.key_list(), two.key_list());
        two.insert("b".to_owned(), FactValue::Int(3));
        assert_eq!((one, two), (map(&[("a", 1)]), map(&[("a", 2), ("b", 3)])));
    }

    #[test]
    fn lists_that_do_not_fit_are_no_map() {
        let keys = |keys: &[&str]| Arc::new(keys.iter().map(|k| (*k).to_owned()).collect::<Vec<_>>());
        let one = || vec![FactValue::Flag(true)];
        assert!(FactMap::of_lists(keys(&["a"]), one()).is_some());
        assert!(FactMap::of_lists(keys(&["a", "b"]), one()).is_none());
        assert!(FactMap::of_lists(keys(&["b", "a"]), [one(), one()].concat()).is_none());
        assert!(FactMap::of_lists(keys(&["a", "a"]), [one(), one()].concat()).is_none());
    }
}
