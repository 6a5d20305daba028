//! The files that are part of the program: those of `knowledge/`.

use include_dir::{Dir, File, include_dir};

use super::error::KnowledgeError;

/// All of them.
pub(super) static BUILTIN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../knowledge");

/// The text of an embedded file.
pub(super) fn utf8(file: &'static File<'static>) -> Result<&'static str, KnowledgeError> {
    file.contents_utf8().ok_or_else(|| KnowledgeError {
        file: file.path().display().to_string(),
        line: 0,
        problem: "is not UTF-8".to_owned(),
        hint: "save it as UTF-8 text".to_owned(),
    })
}
