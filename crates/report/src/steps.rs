//! Steps as text and for programs: what each does, the exact command, and the commands that take it back.

use std::fmt::Write as _;

use linerate_model::printable::one_line;
use linerate_model::step::{Act, Clear, Step};
use schemars::JsonSchema;
use serde::Serialize;

/// A step for programs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StepView {
    /// In words.
    pub says: String,
    /// Program and arguments, if it runs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// File and text, if it writes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<(String, String)>,
    /// Commands that take it back.
    pub undo: Vec<Vec<String>>,
    /// What is filled with zeros after them, in words.
    pub clear: Vec<String>,
}

/// A step as programs get it.
#[must_use]
pub fn shown(step: &Step) -> StepView {
    let operation = step.operation();
    let (command, file) = match operation.act() {
        Act::Run(argv) => (Some(argv), None),
        Act::Write { path, text, .. } => (None, Some((path, text))),
        Act::Copy { .. } => (None, None),
    };
    let clear = operation.clear().iter().map(Clear::says).collect();
    StepView { says: operation.says(), command, file, undo: operation.undo(), clear }
}

/// Program and arguments as one would type them, whole: people copy them. Names in steps are checked to be
/// plain, so that nothing has to be quoted.
#[must_use]
pub fn typed(argv: &[String]) -> String {
    argv.join(" ")
}

/// All steps, numbered, with their commands.
#[must_use]
pub fn text<'a>(steps: impl IntoIterator<Item = &'a Step>) -> String {
    let mut text = String::new();
    for (at, step) in steps.into_iter().enumerate() {
        let operation = step.operation();
        let _ = writeln!(text, "  {}. {}", at + 1, one_line(&operation.says()));
        match operation.act() {
            Act::Run(argv) => _ = writeln!(text, "     {}", one_line(&typed(&argv))),
            Act::Write { text: file, .. } => {
                for line in file.lines() {
                    let _ = writeln!(text, "     | {}", one_line(line));
                }
            }
            Act::Copy { .. } => {}
        }
    }
    text
}

/// What takes a step back, a line each: commands, then what is filled with zeros.
#[must_use]
pub fn undo_lines(step: &Step) -> Vec<String> {
    let operation = step.operation();
    let file = match operation.act() {
        Act::Write { path, .. } | Act::Copy { path, .. } => Some(format!("put back {path}")),
        Act::Run(_) => None,
    };
    let commands = file.into_iter().chain(operation.undo().into_iter().map(|argv| typed(&argv)));
    commands.chain(operation.clear().iter().map(Clear::says)).collect()
}

/// What takes all steps back, in order.
#[must_use]
pub fn undo_text<'a>(steps: impl DoubleEndedIterator<Item = &'a Step>) -> String {
    let mut text = String::new();
    for line in steps.rev().flat_map(undo_lines) {
        let _ = writeln!(text, "     {}", one_line(&line));
    }
    text
}

/// All steps, numbered, with commands but without the texts of files.
#[must_use]
pub fn commands<'a>(steps: impl IntoIterator<Item = &'a Step>) -> String {
    let mut text = String::new();
    for (at, step) in steps.into_iter().enumerate() {
        let operation = step.operation();
        let _ = writeln!(text, "  {}. {}", at + 1, one_line(&operation.says()));
        if let Act::Run(argv) = operation.act() {
            let _ = writeln!(text, "     {}", one_line(&typed(&argv)));
        }
    }
    text
}
