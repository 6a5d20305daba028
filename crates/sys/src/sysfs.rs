//! Forms of values in `/sys`: CPU lists, CPU masks, PCIe links.
//!
//! In: text of a file. Out: numbers, or `None` for text of another form. It never panics and never makes a
//! list longer than [`CPUS_MAX`].

/// More CPUs than Linux supports.
pub const CPUS_MAX: usize = 8192;

/// `0-3,8` -> 0 1 2 3 8.
pub fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last as usize >= CPUS_MAX {
            return None;
        }
        cpus.extend(first..=last);
        if cpus.len() > CPUS_MAX {
            return None;
        }
    }
    Some(cpus)
}

/// 0 1 2 3 8 -> `0-3,8`.
pub fn format_cpu_list(cpus: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(cpu) => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let text = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    parts.iter().map(text).collect::<Vec<_>>().join(",")
}

/// `00000000,0000000f` -> `f`: a CPU mask without leading zeros, so that masks of machines with different
/// numbers of possible CPUs compare equal.
pub fn normal_mask(text: &str) -> Option<String> {
    let text = text.trim();
    let hex = text.len() <= CPUS_MAX && text.chars().all(|c| c.is_ascii_hexdigit() || c == ',');
    if !hex || text.is_empty() {
        return None;
    }
    let short = text.trim_start_matches(['0', ',']).to_ascii_lowercase();
    Some(if short.is_empty() { "0".to_string() } else { short })
}

/// `8.0 GT/s PCIe` -> 8.0.
pub fn pcie_speed_gts(text: &str) -> Option<f64> {
    text.trim().split_ascii_whitespace().next()?.parse().ok().filter(|s: &f64| s.is_finite() && *s > 0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn forms_are_read() {
        assert_eq!(cpu_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(cpu_list(""), Some(vec![]));
        assert_eq!(cpu_list("0-99999999"), None);
        assert_eq!(normal_mask("00000000,0000000F\n").as_deref(), Some("f"));
        assert_eq!(normal_mask("1,00000000").as_deref(), Some("1,00000000"));
        assert_eq!(normal_mask("0").as_deref(), Some("0"));
        assert_eq!(normal_mask("zero"), None);
        assert_eq!(pcie_speed_gts("8.0 GT/s PCIe"), Some(8.0));
        assert_eq!(pcie_speed_gts("Unknown"), None);
    }

    proptest! {
        #[test]
        fn lists_come_back(cpus in proptest::collection::btree_set(0_u32..300, 0..80)) {
            let cpus: Vec<u32> = cpus.into_iter().collect();
            prop_assert_eq!(cpu_list(&format_cpu_list(&cpus)), Some(cpus));
        }

        #[test]
        fn garbage_never_panics(text in "[0-9,a-f\\- \\PC]{0,60}") {
            let _ = (cpu_list(&text), normal_mask(&text), pcie_speed_gts(&text));
        }
    }
}
