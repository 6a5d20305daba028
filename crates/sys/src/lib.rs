//! One file per kernel interface. The only `unsafe` of the product lives here; it decides nothing.
#![allow(unsafe_code)]
pub mod netns;
