//! Two public types with one name: a reader of `Limits` has to find out which of them is meant.

use std::collections::BTreeMap;

/// Where each public type of a crate's `src` is made, by name.
#[derive(Default)]
pub(crate) struct TypeNames(BTreeMap<String, Vec<String>>);

impl TypeNames {
    /// Takes those of a file.
    pub(crate) fn read(&mut self, file: &str, text: &str) {
        if !file.contains("/src/") {
            return;
        }
        for name in text.lines().filter_map(public_type) {
            self.0.entry(name.to_owned()).or_default().push(file.to_owned());
        }
    }

    /// Names of more than one type.
    pub(crate) fn breaches(&self) -> impl Iterator<Item = String> {
        let doubled = self.0.iter().filter(|(_, files)| files.len() > 1);
        doubled.map(|(name, files)| format!("{}: a second public type is called {name}", files.join(", ")))
    }
}

/// The name of the public type that a line begins. What is public in one crate only counts there.
fn public_type(line: &str) -> Option<&str> {
    let declared = line.trim_start().strip_prefix("pub ")?;
    let name = ["struct ", "enum ", "trait ", "type "].iter().find_map(|kind| declared.strip_prefix(kind))?;
    name.split(|c: char| !c.is_alphanumeric()).next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_public_types_of_one_name_are_found() {
        let mut names = TypeNames::default();
        names.read(
            "crates/a/src/lib.rs",
            "pub struct Limits {\n    pub type_of: u8,\n}\npub enum Kind<T> {\n",
        );
        names.read("crates/b/src/b.rs", "    pub type Limits = u8;\npub(crate) struct Kind;\n");
        names.read("crates/b/tests/b.rs", "pub struct Limits;\n");
        let breaches: Vec<String> = names.breaches().collect();
        assert_eq!(
            breaches,
            ["crates/a/src/lib.rs, crates/b/src/b.rs: a second public type is called Limits"]
        );
    }
}
