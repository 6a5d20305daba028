//! A record at the end of a file that is there: what logs and journals of databases do.

use std::io::{self, Write as _};

use linerate_model::durability::Shape;

use super::{Calls, Target, Way, options};

pub(super) struct Append;

impl Way for Append {
    fn name(&self) -> &'static str {
        "append"
    }

    fn doing(&self) -> &'static str {
        "a record at the end of a file"
    }

    fn shape(&self) -> Shape {
        Shape::Grown
    }

    fn names(&self) -> bool {
        false
    }

    fn calls(&self) -> &'static [Calls] {
        &[Calls::None, Calls::Data, Calls::File]
    }

    fn write(&self, target: &Target, content: &[u8], calls: Calls) -> io::Result<()> {
        let mut file = options().append(true).open(&target.file)?;
        file.write_all(content)?;
        calls.on_file(&file)
    }
}
