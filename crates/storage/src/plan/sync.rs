//! How far a first synchronisation is, from what md and LVM print.

/// Share in sync of the array that has this drive (`sda`), from the kernel's list of arrays. `None` when no
/// array has it; all in sync when no line shows progress.
#[must_use]
pub fn parse_mdstat(text: &str, drive: &str) -> Option<f64> {
    let has_it = |line: &str| {
        let mut words = line.split_whitespace().skip(2);
        words.any(|word| word.split_once('[').is_some_and(|(name, _)| name == drive))
    };
    let mut lines = text.lines().skip_while(|line| !has_it(line));
    lines.next()?;
    for line in lines.take_while(|line| line.starts_with(' ')) {
        // `resync=DELAYED` waits for another array and `resync=PENDING` for the first write.
        if line.contains("resync=") {
            return Some(0.0);
        }
        let Some((_, rest)) = line.split_once("resync = ").or_else(|| line.split_once("recovery = ")) else {
            continue;
        };
        // Counted from the numbers: the percentage has one digit.
        let (done, all) = rest.split_once('(')?.1.split_once(')')?.0.split_once('/')?;
        let (done, all): (f64, f64) = (done.parse().ok()?, all.parse().ok()?);
        return (all > 0.0).then(|| (done / all).clamp(0.0, 1.0));
    }
    Some(1.0)
}

/// Share in sync of a volume of the device mapper, from what `dmsetup status` prints: `done/all` of the
/// targets `raid` (sectors) and `mirror` (regions). `lvs` has two digits of a percentage only, which for a
/// large volume stand still for a minute.
#[must_use]
pub fn parse_status(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace().skip(2);
    words.next().filter(|target| ["raid", "mirror"].contains(target))?;
    let (done, all) = words.find_map(|word| word.split_once('/'))?;
    let (done, all): (f64, f64) = (done.parse().ok()?, all.parse().ok()?);
    (all > 0.0).then(|| (done / all).clamp(0.0, 1.0))
}
