//! Whether the colours of the heat map differ without colour: the style sheet in, luminances
//! and contrasts out.

/// Classes of the style sheet, the best first.
const CLASSES: [&str; 4] = ["fine", "low", "worse", "dead"];

/// Relative luminance of `#rrggbb` (WCAG 2).
fn luminance(colour: &str) -> f64 {
    let channel = |at: usize| {
        let byte = u8::from_str_radix(&colour[at..at + 2], 16).expect("a colour of six digits");
        let c = f64::from(byte) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

/// Lightness L* of a colour, 0 to 100: equal steps seem equal.
fn lightness(colour: &str) -> f64 {
    let y = luminance(colour);
    if y <= 216.0 / 24389.0 { y * 24389.0 / 27.0 } else { 116.0 * y.cbrt() - 16.0 }
}

fn contrast(a: &str, b: &str) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// The `:root` blocks of the style sheet: light, dark, print.
fn modes() -> Vec<&'static str> {
    let sheet = include_str!("style.css");
    sheet.split(":root{").skip(1).map(|rest| rest.split('}').next().unwrap_or_default()).collect()
}

fn of<'a>(mode: &'a str, name: &str) -> &'a str {
    let head = format!("--{name}:");
    let from = mode.find(&head).unwrap_or_else(|| panic!("no {head} in {mode}")) + head.len();
    mode[from..].split(';').next().unwrap_or_default().trim()
}

#[test]
fn lightness_is_monotone_from_the_paper() {
    let modes = modes();
    assert_eq!(modes.len(), 3);
    for mode in modes {
        let paper = lightness(of(mode, "paper"));
        let steps: Vec<f64> =
            CLASSES.iter().map(|class| (lightness(of(mode, class)) - paper).abs()).collect();
        assert!(steps[0] < 8.0, "what is fine stands out: {steps:?}");
        assert!(steps.windows(2).all(|two| two[1] - two[0] >= 8.0), "{steps:?}");
    }
}

#[test]
fn text_is_legible_on_every_class() {
    for mode in modes() {
        for class in CLASSES {
            let on = contrast(of(mode, class), of(mode, &format!("on-{class}")));
            assert!(on >= 4.5, "{class}: {on}");
        }
        for (text, back) in
            [("ink", "paper"), ("soft", "paper"), ("accent", "paper"), ("ink", "card"), ("paper", "bad")]
        {
            let on = contrast(of(mode, text), of(mode, back));
            assert!(on >= 4.5, "{text} on {back}: {on}");
        }
    }
}
