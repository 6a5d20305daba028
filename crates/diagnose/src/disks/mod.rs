//! Block devices: counters and facts come in; what they are, how fast they went, and what is wrong with them go out.
//!
//! Nothing here has been measured by load of ours: it is what the devices did under whatever load there was.

mod equals;
mod findings;
pub mod plan;
mod rates;
mod tree;

pub use findings::findings;
pub use rates::{between, join_paths};
pub use tree::{Layout, Leaf, layout};

#[cfg(test)]
mod tests;
