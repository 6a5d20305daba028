//! The largest packets of a path in words.

use linerate_model::load::LoadReport;
use linerate_model::path_mtu::{MtuProbe, PathMtu, SizeLimit};
use linerate_model::printable;
use linerate_model::sample::Sample;
use maud::{Markup, html};

use super::view::View;

/// See the file's head.
#[derive(Debug)]
pub struct PathMtuView;

/// What happens above the largest packet that arrives.
fn above(limit: &SizeLimit) -> String {
    match (limit.largest_passing, limit.smallest_failing, limit.refused_mtu) {
        (None, ..) => "no size arrived".to_owned(),
        (Some(_), None, _) => "the largest that was tried".to_owned(),
        (Some(_), Some(least), _) if limit.is_black_hole() => {
            format!("from {least} bytes on packets vanish without a word: a black hole")
        }
        (Some(_), Some(_), Some(mtu)) => format!("larger ones are refused: the sender's kernel knows {mtu}"),
        (Some(_), Some(least), None) => format!("{least} bytes did not arrive"),
    }
}

fn words(limit: &SizeLimit) -> String {
    let largest = limit.largest_passing.map_or_else(|| "none".to_owned(), |bytes| format!("{bytes} bytes"));
    format!("{largest}, {}", above(limit))
}

/// Each direction with the hosts in its order.
fn directions<'a>(sample: &Sample, found: &'a PathMtu) -> [(String, &'a SizeLimit); 2] {
    let pair = |from: &str, to: &str| printable::clean(&format!("{from} to {to}"));
    let (from, to) = (&sample.test.from, &sample.test.to);
    [(pair(from, to), &found.forward), (pair(to, from), &found.backward)]
}

fn tried(probe: &MtuProbe) -> String {
    let mark = match (probe.answered, probe.refused_mtu) {
        (1.., _) => "",
        (0, Some(_)) => " refused",
        (0, None) => " lost",
    };
    format!("{}{mark}", probe.bytes)
}

impl View for PathMtuView {
    fn kind(&self) -> &'static str {
        "path-mtu"
    }

    fn headline(&self, _: &Sample, tx: &LoadReport, _: &LoadReport) -> String {
        let Some(found) = &tx.path_mtu else { return "no probe was answered".to_owned() };
        let wrong = [("there", &found.forward), ("back", &found.backward)]
            .into_iter()
            .find(|(_, way)| way.is_black_hole() || way.largest_passing.is_none());
        match wrong {
            Some((way, limit)) => format!("the way {way} takes {}", words(limit)),
            None if found.forward.largest_passing == found.backward.largest_passing => {
                format!("both ways take {}", words(&found.forward))
            }
            None => format!("there {}; back {}", words(&found.forward), words(&found.backward)),
        }
    }

    fn text(&self, sample: &Sample, tx: &LoadReport, _: &LoadReport) -> String {
        let Some(found) = &tx.path_mtu else { return String::new() };
        // The headline has it.
        if words(&found.forward) == words(&found.backward) {
            return String::new();
        }
        let lines = directions(sample, found).map(|(pair, limit)| format!("{pair:<24}  {}\n", words(limit)));
        lines.concat()
    }

    fn details(&self, sample: &Sample, tx: &LoadReport) -> String {
        let Some(found) = &tx.path_mtu else { return String::new() };
        let lines = directions(sample, found).map(|(pair, limit)| {
            let tried: Vec<String> = limit.probes.iter().map(tried).collect();
            format!("{pair}: tried {}\n", tried.join(", "))
        });
        lines.concat()
    }

    fn drawings(&self, _: &LoadReport, _: &LoadReport) -> Markup {
        html! {}
    }

    fn is_finding(&self, tx: &LoadReport, _: &LoadReport) -> bool {
        tx.path_mtu.as_ref().is_none_or(|found| {
            [&found.forward, &found.backward].iter().any(|w| w.is_black_hole() || w.largest_passing.is_none())
        })
    }
}
