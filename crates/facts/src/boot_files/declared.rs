//! The facts of the files of a boot, as they are declared.

use linerate_model::drift::BOOT_READ;
use linerate_model::fact::FactDecl;

use super::super::readings::fact;

pub(in super::super) fn declarations() -> Vec<FactDecl> {
    vec![
        fact(
            "boot.*.*",
            "list",
            "Owner, file with line, and value of a line that sets the setting at boot, numbered in the order of a \
             boot; only when asked for, and for settings that are read with it.",
        ),
        fact(BOOT_READ, "flag", "Whether the files of a boot were read; only when asked for."),
    ]
}
