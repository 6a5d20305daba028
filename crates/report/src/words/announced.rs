//! What a survey announces before it measures, in lines.

use linerate_model::announced::Announcement;
use linerate_model::names::ranges;
use linerate_model::units::{bytes, percent, rate};

/// Hosts of unknown speed that are named.
const UNKNOWN_MAX: usize = 4;

/// The lines; none where no link is loaded.
#[must_use]
pub fn announced(announcement: &Announcement) -> Vec<String> {
    let (Some(busiest), Some(fullest)) = (announcement.busiest(), announcement.fullest()) else {
        return Vec::new();
    };
    let share = announcement
        .share
        .map_or(String::new(), |share| format!("at most {} of each link; ", percent(share)));
    let name = if busiest.is_uplink { format!("uplink of {}", busiest.of) } else { busiest.of.clone() };
    let mut lines = vec![format!(
        "load: {share}no link is busy for more than {:.0} s and {} (most: {name})",
        busiest.planned_s.ceil(),
        bytes(fullest.planned_bytes as f64),
    )];
    lines.push(format!(
        "load: {:.0} s and {} where all tests have to be repeated",
        busiest.most_s.ceil(),
        bytes(fullest.most_bytes as f64),
    ));
    let unknown: Vec<&str> = announcement.unknown().collect();
    if !unknown.is_empty() {
        let named =
            if unknown.len() > UNKNOWN_MAX { format!("{} hosts", unknown.len()) } else { ranges(&unknown) };
        lines.push(format!(
            "load: link speed of {named} unknown, {} assumed (inventory: link_mbit)",
            rate(announcement.assumed_bps)
        ));
    }
    lines
}
