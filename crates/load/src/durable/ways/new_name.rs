//! A temporary file that gets its name when it is whole: what mail servers and object stores do.

use std::io;

use linerate_model::durability::Shape;

use super::{Calls, Target, Way, temporary_file};

pub(super) struct NewName;

impl Way for NewName {
    fn name(&self) -> &'static str {
        "new-name"
    }

    fn doing(&self) -> &'static str {
        "temporary file, rename to a name that is new"
    }

    fn shape(&self) -> Shape {
        Shape::Fresh
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
