//! A new file under its own name: what an editor, a compiler or a data node does.

use std::io;

use linerate_model::durability::Shape;

use super::{Calls, Target, Way, new_file};

pub(super) struct Create;

impl Way for Create {
    fn name(&self) -> &'static str {
        "create"
    }

    fn doing(&self) -> &'static str {
        "new file, write, close"
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
        new_file(&target.file, content, calls)?;
        calls.on_folder(&target.folder)
    }
}
