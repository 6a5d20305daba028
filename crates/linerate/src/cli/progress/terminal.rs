//! The terminal that a live line is drawn on: stderr, but nothing while a question stands there, which the
//! next redraw would erase.
//!
//! What comes in: what the progress bar draws. What goes out: the same, or nothing.

use std::io::{self, Write};

use indicatif::TermLike;

use linerate_fleet::progress::is_terminal_taken;

/// Columns and lines of a terminal that does not say how many it has.
const USUAL: (u16, u16) = (80, 24);

/// See the file's head.
#[derive(Debug)]
pub(super) struct Terminal;

fn size() -> (u16, u16) {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok().map(|size| (size.ws_col, size.ws_row));
    size.filter(|(columns, lines)| *columns > 0 && *lines > 0).unwrap_or(USUAL)
}

fn draw(text: &str) -> io::Result<()> {
    if is_terminal_taken() { Ok(()) } else { io::stderr().write_all(text.as_bytes()) }
}

/// Moves the cursor, by a control sequence of ECMA-48.
fn move_cursor(by: usize, direction: char) -> io::Result<()> {
    if by == 0 { Ok(()) } else { draw(&format!("\x1b[{by}{direction}")) }
}

impl TermLike for Terminal {
    fn width(&self) -> u16 {
        size().0
    }

    fn height(&self) -> u16 {
        size().1
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        move_cursor(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        move_cursor(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        move_cursor(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        move_cursor(n, 'D')
    }

    fn write_line(&self, s: &str) -> io::Result<()> {
        draw(&format!("{s}\n"))
    }

    fn write_str(&self, s: &str) -> io::Result<()> {
        draw(s)
    }

    fn clear_line(&self) -> io::Result<()> {
        draw("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().flush()
    }
}
