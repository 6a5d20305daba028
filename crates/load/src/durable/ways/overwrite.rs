//! Other data in the place of the old, at the same length: what databases and images of virtual machines do.

use std::io::{self, Write as _};

use linerate_model::durability::Shape;

use super::{Calls, Target, Way, options};

pub(super) struct Overwrite;

impl Way for Overwrite {
    fn name(&self) -> &'static str {
        "overwrite"
    }

    fn doing(&self) -> &'static str {
        "write over the old data where they are"
    }

    fn shape(&self) -> Shape {
        Shape::InPlace
    }

    fn names(&self) -> bool {
        false
    }

    fn calls(&self) -> &'static [Calls] {
        &[Calls::None, Calls::Data, Calls::File]
    }

    fn write(&self, target: &Target, content: &[u8], calls: Calls) -> io::Result<()> {
        let mut file = options().write(true).open(&target.file)?;
        file.write_all(content)?;
        calls.on_file(&file)
    }
}
