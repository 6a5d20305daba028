//! A temporary file that takes the name of the old one: what most programs do with their configuration and state.

use std::io;

use linerate_model::durability::Shape;

use super::{Calls, Target, Way, temporary_file};

pub(super) struct Replace;

impl Way for Replace {
    fn name(&self) -> &'static str {
        "replace"
    }

    fn doing(&self) -> &'static str {
        "temporary file, rename over the old one"
    }

    fn shape(&self) -> Shape {
        Shape::Replaced
    }

    fn names(&self) -> bool {
        true
    }

    fn calls(&self) -> &'static [Calls] {
        &[Calls::None, Calls::File, Calls::FileAndFolder]
    }

    fn write(&self, target: &Target, content: &[u8], calls: Calls) -> io::Result<()> {
        temporary_file(&target.temporary, content, calls)?;
        std::fs::rename(&target.temporary, &target.file)?;
        calls.on_folder(&target.folder)
    }
}
