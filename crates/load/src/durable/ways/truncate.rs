//! A file that is made empty and written again: what a shell does with `>`, and careless programs with their configuration.

use std::io::{self, Write as _};

use linerate_model::durability::Shape;

use super::{Calls, Target, Way, options};

pub(super) struct Truncate;

impl Way for Truncate {
    fn name(&self) -> &'static str {
        "truncate"
    }

    fn doing(&self) -> &'static str {
        "make the file empty and write it again"
    }

    fn shape(&self) -> Shape {
        Shape::Truncated
    }

    fn names(&self) -> bool {
        false
    }

    fn calls(&self) -> &'static [Calls] {
        &[Calls::None, Calls::File]
    }

    fn write(&self, target: &Target, content: &[u8], calls: Calls) -> io::Result<()> {
        let mut file = options().write(true).truncate(true).open(&target.file)?;
        file.write_all(content)?;
        calls.on_file(&file)
    }
}
