//! Which letters, and how wide are they? One embedded font, so that pictures look alike everywhere.

use std::sync::OnceLock;

use plotters::style::{Color as _, FontFamily, FontStyle, RGBColor, TextStyle, register_font};

use super::palette::Color;

/// DejaVu Sans; its licence is beside it. It runs wide, so that what is laid out for it also fits where a
/// viewer takes another font.
const DEJAVU_SANS: &[u8] = include_bytes!("../../assets/DejaVuSans.ttf");

/// The family's name, as an SVG's reader looks for it.
const FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";

/// The drawing library counts a font's size from line to line and divides by this to get the em.
const LINE_PER_EM: f64 = 1.24;

/// A line of text is this much higher than its em.
pub(crate) const LINE_HEIGHT: f64 = 1.25;

/// The style of a text of this size, pixels an em.
pub(crate) fn style(size: f64, color: Color) -> TextStyle<'static> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    // The font is a constant that tests measure with: it is valid.
    REGISTERED.get_or_init(|| register_font(FAMILY, FontStyle::Normal, DEJAVU_SANS).is_ok());
    let (r, g, b) = color.rgb();
    let mut style = TextStyle::from((FontFamily::Name(FAMILY), size * LINE_PER_EM));
    style.color = RGBColor(r, g, b).to_backend_color();
    style
}

/// The width of a text of this size, pixels.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let style = style(size, Color::Ink);
    match style.font.box_size(text) {
        Ok((width, _)) => f64::from(width) + 1.0,
        // A generous guess: no letter is wider than an em.
        Err(_) => size * text.chars().count() as f64,
    }
}

/// The text, cut with an ellipsis so that it is no wider than this.
pub(crate) fn fit(text: &str, size: f64, width_max: f64) -> String {
    if width(text, size) <= width_max {
        return text.to_owned();
    }
    let letters: Vec<char> = text.chars().collect();
    let (mut fits, mut too_many) = (0, letters.len());
    while too_many - fits > 1 {
        let middle = usize::midpoint(fits, too_many);
        let cut: String = letters[..middle].iter().collect();
        if width(&format!("{}…", cut.trim_end()), size) <= width_max {
            fits = middle
        } else {
            too_many = middle
        }
    }
    let cut: String = letters[..fits].iter().collect();
    format!("{}…", cut.trim_end())
}

/// The text in lines no wider than this; the last of `lines_max` is cut.
pub(crate) fn wrap(text: &str, size: f64, width_max: f64, lines_max: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let last = lines.len() - 1;
        let longer = if lines[last].is_empty() { word.to_owned() } else { format!("{} {word}", lines[last]) };
        if width(&longer, size) <= width_max || lines[last].is_empty() {
            lines[last] = longer;
        } else if lines.len() < lines_max {
            lines.push(word.to_owned());
        } else {
            let rest: Vec<_> = words.collect();
            lines[last] = format!("{longer} {}", rest.join(" "));
            break;
        }
    }
    lines.iter().map(|line| fit(line, size, width_max)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_have_their_own_widths() {
        assert!(width("iiii", 12.0) < width("WWWW", 12.0));
        assert!((width("0000000000", 12.0) / 12.0 - 6.7).abs() < 0.6, "a digit is about 0.64 em");
    }

    #[test]
    fn text_is_cut_and_wrapped_to_fit() {
        let text = "c1 wrote with token 1 after c2 had written with token 2";
        assert_eq!(fit(text, 12.0, 1_000.0), text);
        let cut = fit(text, 12.0, 100.0);
        assert!(cut.ends_with('…') && width(&cut, 12.0) <= 100.0, "{cut}");
        let lines = wrap(text, 12.0, 150.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| width(line, 12.0) <= 150.0) && lines[1].ends_with('…'), "{lines:?}");
        assert_eq!(wrap(&"x".repeat(500), 12.0, 100.0, 3).len(), 1);
    }
}
