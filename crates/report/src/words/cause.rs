//! What speaks for and against a cause, in lines; and differences that no cause explains.

use linerate_model::finding::{BenignDifference, Clue, FactHit, RankedCause};
use linerate_model::names::ranges;
use linerate_model::units::{percent, short};

/// Fills in the texts of a cause.
pub(super) fn write(cause: &mut RankedCause) {
    match cause.supports.first() {
        Some(Clue::Read(FactHit { host, key, value, peers })) if cause.is_unknown_setting() => {
            let peers = peers.as_ref().map_or("lack it".to_owned(), |peers| format!("have {peers}"));
            let line = format!("{host}: {key} is {value}, the others {peers}");
            cause.title = format!("{key} differs on {host}");
            "No cause is known for this setting. It is listed because it differs from the peers."
                .clone_into(&mut cause.mechanism);
            cause.evidence = vec![line];
        }
        Some(_) => cause.evidence = cause.supports.iter().map(support).collect(),
        None => {}
    }
    if !cause.contradicts.is_empty() {
        cause.against = cause.contradicts.iter().map(contradiction).collect();
    }
}

/// A line of what speaks for a cause.
pub(super) fn support(clue: &Clue) -> String {
    match clue {
        Clue::Read(FactHit { host, key, value, peers }) => {
            let peers = peers.as_ref().map_or(String::new(), |peers| format!(", the others have {peers}"));
            format!("{host}: {key} is {value}{peers}")
        }
        Clue::AlsoOn(hosts) => {
            format!("likewise on {}", ranges(&hosts.iter().map(String::as_str).collect::<Vec<_>>()))
        }
        Clue::Measured { name, value, says } if says.is_empty() => {
            format!("{} {}", name.replace('_', " "), short(*value))
        }
        Clue::Measured { value, says, .. } => {
            says.replace("{%}", &percent(*value)).replace("{}", &short(*value))
        }
    }
}

/// A line of what speaks against it.
fn contradiction(clue: &Clue) -> String {
    match clue {
        Clue::Measured { name, value, .. } => {
            format!("not as expected: {} is {}", name.replace('_', " "), short(*value))
        }
        _ => support(clue),
    }
}

/// What is known of a difference that no named cause explains.
pub(super) fn benign(difference: &BenignDifference) -> &'static str {
    if difference.is_of_layer {
        "matters inside an overlay: whether this was one is not known"
    } else if difference.is_known {
        "known to matter elsewhere, but it does not explain this place, direction and shape"
    } else {
        "differs; no file knows whether it does this harm"
    }
}
