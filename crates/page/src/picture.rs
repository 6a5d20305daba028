//! A matrix as a picture of one square for each pair: squares in, PNG out. A thousand hosts are a million
//! pairs: no page of text holds them, and a picture needs no script.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use linerate_report::grid::{Grid, SquareKind};
use linerate_report::heat::Heat;

/// Side of the picture that is aimed at, pixels: more hosts than this have one pixel each.
const SIDE: usize = 640;
/// Colour of a square: its number in the palette.
const UNSEEN: u8 = 4;
const ITSELF: u8 = 5;
/// Colours, the best class first, then what was not seen, then a host with itself.
pub(crate) const COLOURS: usize = 6;

/// Pixels of the side of a square.
pub(crate) fn scale(hosts: usize) -> usize {
    (SIDE / hosts.max(1)).clamp(1, 24)
}

/// The picture: rows send, columns receive.
pub(crate) fn png(grid: &Grid, palette: [[u8; 3]; COLOURS]) -> Vec<u8> {
    let count = grid.hosts.len();
    let scale = scale(count);
    let side = count * scale;
    let mut squares = vec![UNSEEN; count * count];
    for i in 0..count {
        squares[i * count + i] = ITSELF;
    }
    for ((row, column), square) in &grid.tested {
        if row != column && square.kind != SquareKind::Unseen {
            squares[row * count + column] = number(square.heat);
        }
    }
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::new(4));
    for row in squares.chunks(count.max(1)) {
        let mut line = vec![0];
        line.extend(row.iter().flat_map(|colour| std::iter::repeat_n(*colour, scale)));
        for _ in 0..scale {
            // Into memory: it cannot fail.
            let _ = zlib.write_all(&line);
        }
    }
    let data = zlib.finish().unwrap_or_default();
    let mut out = vec![137, 80, 78, 71, 13, 10, 26, 10];
    let size = u32::try_from(side).unwrap_or(u32::MAX).to_be_bytes();
    chunk(&mut out, *b"IHDR", &[&size[..], &size[..], &[8, 3, 0, 0, 0]].concat());
    chunk(&mut out, *b"PLTE", palette.as_flattened());
    chunk(&mut out, *b"IDAT", &data);
    chunk(&mut out, *b"IEND", &[]);
    out
}

fn number(heat: Heat) -> u8 {
    match heat {
        Heat::Fine => 0,
        Heat::Low => 1,
        Heat::Bad => 2,
        Heat::Dead => 3,
    }
}

fn chunk(out: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    out.extend(u32::try_from(data.len()).unwrap_or(0).to_be_bytes());
    let from = out.len();
    out.extend(kind);
    out.extend(data);
    let mut crc = flate2::Crc::new();
    crc.update(&out[from..]);
    out.extend(crc.sum().to_be_bytes());
}
