//! The part of the program `linerate` that other programs of the workspace may use: the readers of
//! inventories and of files from outside, and words of a shell, so that the fuzz runner can throw bytes at
//! them. What comes in: texts. What goes out: checked inventories. It opens no connection.

// In a program every `pub` is the border of a room, not of the crate.
#![allow(unreachable_pub)]

pub mod input;
pub mod inventory;
pub mod shell;
