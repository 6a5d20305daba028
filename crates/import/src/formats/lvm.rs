//! `lvs`, `vgs`, `pvs` and `lvdisplay`: volumes of LVM and their groups. Tables come in, facts
//! `lvm.<group>.…` and `lvm.<group>/<volume>.…` go out, by the names of the columns.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Lvm;

/// Columns that are kept, with the names of their facts.
const COLUMNS: [(&str, &str); 17] = [
    ("Attr", "attr"),
    ("LSize", "size"),
    ("VSize", "size"),
    ("VFree", "free"),
    ("PSize", "size"),
    ("PFree", "free"),
    ("Data%", "data_percent"),
    ("Meta%", "meta_percent"),
    ("Cpy%Sync", "sync_percent"),
    ("Copy%", "sync_percent"),
    ("Snap%", "snapshot_percent"),
    ("Devices", "devices"),
    ("#Str", "stripes"),
    ("Stripe", "stripe_bytes"),
    ("Type", "type"),
    ("#PV", "drives"),
    ("Region", "region"),
];

/// A heading: names of the columns and where each ends, for columns may be empty.
fn heading(line: &str) -> Option<Vec<(&str, usize, usize)>> {
    if !line.is_ascii() {
        return None;
    }
    let columns: Vec<(&str, usize, usize)> = line
        .split_whitespace()
        .map(|word| {
            let from = word.as_ptr() as usize - line.as_ptr() as usize;
            (word, from, from + word.len())
        })
        .collect();
    let has = |name: &str| columns.iter().any(|(column, ..)| *column == name);
    let first = columns.first()?.0;
    (["LV", "VG", "PV"].contains(&first) && (has("LSize") || has("VSize") || has("PSize") || has("Attr")))
        .then_some(columns)
}

/// The value below a column: the word that touches it.
fn below<'l>(line: &'l str, (_, from, to): (&str, usize, usize)) -> &'l str {
    let mut words = line.split_whitespace().map(|word| {
        let begin = word.as_ptr() as usize - line.as_ptr() as usize;
        (word, begin, begin + word.len())
    });
    words.find(|(_, begin, end)| *begin < to && *end > from).map_or("", |(word, ..)| word)
}

/// `--- Logical volume ---`
fn is_display(line: &str) -> bool {
    ["--- Logical volume ---", "--- Volume group ---"].contains(&line.trim())
}

impl Reader for Lvm {
    fn name(&self) -> &'static str {
        "lvm"
    }

    fn describes(&self) -> &'static str {
        "lvs, vgs, pvs, lvdisplay"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        heading(block.first()).is_some() || is_display(block.first())
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        if is_display(block.first()) {
            return display(block, out);
        }
        let Some(columns) = heading(block.first()) else { return 1 };
        let find = |name: &str| columns.iter().find(|(column, ..)| *column == name).copied();
        let mut taken = 1;
        for (at, line) in block.lines.iter().enumerate().skip(1) {
            if line.trim().is_empty() || !line.is_ascii() || !line.starts_with(' ') {
                break;
            }
            let value = |name: &str| find(name).map_or("", |column| below(line, column));
            let (volume, group, drive) = (value("LV"), value("VG"), value("PV"));
            let name = match columns[0].0 {
                "LV" => format!("{group}/{}", volume.trim_matches(['[', ']'])),
                "PV" => drive.trim_start_matches("/dev/").to_owned(),
                _ => group.to_owned(),
            };
            let name = name.replace('.', "/");
            if name.is_empty() {
                break;
            }
            for (column, fact) in COLUMNS {
                let value = value(column);
                if !value.is_empty() {
                    let number = value.parse::<f64>().ok().filter(|_| column.ends_with('%'));
                    let value = number.map_or_else(|| FactValue::Text(value.to_owned()), FactValue::Float);
                    out.fact(format!("lvm.{name}.{fact}"), value);
                }
            }
            taken = at + 1;
        }
        taken
    }
}

/// `lvdisplay`, `vgdisplay`: names and values in two columns.
fn display(block: &Block<'_>, out: &mut Sink) -> usize {
    const NAMES: [(&str, &str); 9] = [
        ("LV Status", "status"),
        ("LV Size", "size"),
        ("VG Size", "size"),
        ("Current LE", "extents"),
        ("Segments", "segments"),
        ("Mirrored volumes", "mirrors"),
        ("Read ahead sectors", "read_ahead"),
        ("Block device", "number"),
        ("Allocation", "allocation"),
    ];
    let (mut group, mut volume) = (String::new(), String::new());
    let mut taken = 0;
    for (at, line) in block.lines.iter().enumerate() {
        let text = line.trim();
        if is_display(line) {
            (group, volume) = (String::new(), String::new());
        } else if let Some((name, value)) = text.split_once("  ") {
            let value = value.trim();
            match name {
                "VG Name" => value.clone_into(&mut group),
                "LV Name" => value.rsplit('/').next().unwrap_or_default().clone_into(&mut volume),
                _ => {
                    let of = if volume.is_empty() { group.clone() } else { format!("{group}/{volume}") };
                    if let Some((_, fact)) = NAMES.iter().find(|(wanted, _)| *wanted == name)
                        && !of.is_empty()
                    {
                        out.text(format!("lvm.{}.{fact}", of.replace('.', "/")), value);
                    }
                }
            }
        } else if !(text.is_empty() || text.starts_with("- currently set to") || text.starts_with("LV ")) {
            break;
        }
        if !text.is_empty() {
            taken = at + 1;
        }
    }
    taken.max(1)
}
