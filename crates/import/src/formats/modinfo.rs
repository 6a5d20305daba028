//! `modinfo MODULE`: from where a driver was loaded, and its version. Lines come in, facts of a module go
//! out.

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Modinfo;

/// `filename:       /lib/modules/…/mlx4_en.ko`: the path and the name of the module.
fn file(line: &str) -> Option<(&str, String)> {
    let path = line.strip_prefix("filename:")?.trim();
    let base = path.rsplit('/').next()?;
    let name = base.split(".ko").next()?.replace('-', "_");
    (path.contains(".ko") && !name.is_empty()).then_some((path, name))
}

impl Reader for Modinfo {
    fn name(&self) -> &'static str {
        "modinfo"
    }

    fn describes(&self) -> &'static str {
        "modinfo: file and version of a driver"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        file(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let Some((path, name)) = file(block.first()) else { return 1 };
        out.text(format!("module.{name}.path"), path);
        let mut taken = 1;
        for (at, line) in block.lines.iter().enumerate().skip(1) {
            let Some((field, value)) = line.split_once(':') else { break };
            if field.contains(' ') || file(line).is_some() {
                break;
            }
            if ["version", "firmware"].contains(&field) {
                out.text(format!("module.{name}.{field}"), value.trim());
            }
            taken = at + 1;
        }
        taken
    }
}
