//! The reliability of probabilities, drawn as SVG: reported probability against share that was true, with
//! intervals.
//!
//! In: rows of the reliability table. Out: a picture. Points on the diagonal are calibrated.

use std::fmt::Write as _;

use crate::reliability::{Bin, ClaimSubject};

const SIDE: f64 = 420.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 40.0;
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 520.0;
const COLOURS: [&str; 4] = ["#1f6fb2", "#d9822b", "#2d8a4e", "#8a3ffc"];

fn x(share: f64) -> f64 {
    LEFT + share * SIDE
}

fn y(share: f64) -> f64 {
    TOP + (1.0 - share) * SIDE
}

/// Draws the rows.
pub(crate) fn picture(bins: &[Bin]) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"15\">Share that is true over reported probability</text>\n"
    );
    for tenth in 0..=10 {
        let share = f64::from(tenth) / 10.0;
        let _ = writeln!(
            svg,
            "<line x1=\"{a:.1}\" y1=\"{TOP}\" x2=\"{a:.1}\" y2=\"{low:.1}\" stroke=\"#eee\"/>\
             <line x1=\"{LEFT}\" y1=\"{b:.1}\" x2=\"{right:.1}\" y2=\"{b:.1}\" stroke=\"#eee\"/>",
            a = x(share),
            b = y(share),
            low = y(0.0),
            right = x(1.0)
        );
        if tenth % 2 == 0 {
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{} %</text>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{} %</text>",
                x(share),
                y(0.0) + 20.0,
                10 * tenth,
                LEFT - 8.0,
                y(share) + 4.0,
                10 * tenth
            );
        }
    }
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#888\" stroke-dasharray=\"5 4\"/>",
        x(0.0),
        y(0.0),
        x(1.0),
        y(1.0)
    );
    for (number, (about, colour)) in ClaimSubject::ALL.into_iter().zip(COLOURS).enumerate() {
        points(&mut svg, bins, about, colour, 3.0 * (number as f64 - 1.5));
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{at:.1}\" r=\"5\" fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x(1.0) + 24.0,
            x(1.0) + 36.0,
            TOP + 24.0 * number as f64 + 14.0,
            about.words(),
            at = TOP + 24.0 * number as f64 + 10.0,
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">reported probability</text>\n</svg>",
        x(0.5),
        HEIGHT - 16.0
    );
    svg
}

/// The points of one kind of statement, shifted to avoid overlap; larger for more statements.
fn points(svg: &mut String, bins: &[Bin], about: ClaimSubject, colour: &str, aside: f64) {
    for bin in bins.iter().filter(|b| b.about == about) {
        let (at, share) = (x(bin.mean_probability) + aside, bin.right as f64 / bin.count as f64);
        let radius = 3.0 + (bin.count as f64).log10().max(0.0) * 2.0;
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" y1=\"{:.1}\" x2=\"{at:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" opacity=\"0.6\"/>\
             <circle cx=\"{at:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\" fill=\"{colour}\"><title>{}: {} of {} right, reported {:.0} %</title></circle>",
            y(bin.interval.0),
            y(bin.interval.1),
            y(share),
            about.words(),
            bin.right,
            bin.count,
            100.0 * bin.mean_probability
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reliability::{ProbabilityClaim, bins};

    #[test]
    fn every_row_is_a_point() {
        let claim =
            |probability, right| ProbabilityClaim { about: ClaimSubject::Location, probability, right };
        let svg = picture(&bins(&[claim(0.95, true), claim(0.55, false)]));
        assert_eq!(svg.matches("<title>").count(), 2);
        assert!(svg.contains("1 of 1 right, reported 95 %") && svg.ends_with("</svg>\n"), "{svg}");
    }
}
