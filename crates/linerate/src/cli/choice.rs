//! Options that take one of a closed list of values.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// A parser of these values by their names.
pub(super) fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(all.iter().map(|one| name(*one)));
    names.try_map(move |text| all.iter().copied().find(|one| name(*one) == text).ok_or("not in the list"))
}
