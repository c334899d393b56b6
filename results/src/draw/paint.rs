//! How does a scene become a file? Painted by plotters, as SVG and as PNG.

use std::fmt::Write as _;

use plotters::prelude::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::style::{
    RGBAColor, ShapeStyle,
    text_anchor::{HPos, Pos, VPos},
};

use super::{
    font,
    palette::{Color, NEUTRALS},
    scene::{Label, Rect, Scene, Shape},
};

/// Between two lines of a hatch, pixels.
const HATCH_GAP: f64 = 6.0;

/// A PNG has this many pixels a pixel of the SVG.
const PNG_SCALE: f64 = 1.5;

/// Why a picture could not be drawn.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PaintError {
    /// The drawing library failed.
    #[error("drawing failed: {0}")]
    Drawing(String),
    /// The picture could not be encoded.
    #[error("encoding failed: {0}")]
    Encoding(#[from] png::EncodingError),
}

/// The outcome of a drawing call, whose error differs from backend to backend.
fn drawn<E: std::fmt::Display>(result: Result<(), E>) -> Result<(), PaintError> {
    result.map_err(|error| PaintError::Drawing(error.to_string()))
}

/// The scene as an SVG that follows the reader's light or dark theme.
pub(crate) fn svg(scene: &Scene, title: &str) -> Result<String, PaintError> {
    let mut text = String::new();
    {
        let mut backend = SVGBackend::with_string(&mut text, (scene.width as u32, scene.height as u32));
        paint(scene, &mut backend, 1.0)?;
        drawn(backend.present())?;
    }
    Ok(with_title_and_themes(&text, title))
}

/// The scene as a PNG, in the light theme.
pub(crate) fn png(scene: &Scene) -> Result<Vec<u8>, PaintError> {
    let size = ((scene.width * PNG_SCALE) as u32, (scene.height * PNG_SCALE) as u32);
    let mut pixels = vec![0xFF; size.0 as usize * size.1 as usize * 3];
    {
        let mut backend = BitMapBackend::with_buffer(&mut pixels, size);
        paint(scene, &mut backend, PNG_SCALE)?;
        drawn(backend.present())?;
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, size.0, size.1);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(bytes)
}

/// Adds what the drawing library cannot: a title for screen readers, and the dark twins of the neutral tones.
fn with_title_and_themes(svg: &str, title: &str) -> String {
    let mut head = String::from("<title>");
    for c in title.chars() {
        match c {
            '<' => head.push_str("&lt;"),
            '>' => head.push_str("&gt;"),
            '&' => head.push_str("&amp;"),
            c if c.is_control() => head.push(' '),
            c => head.push(c),
        }
    }
    head.push_str("</title>\n<style>@media (prefers-color-scheme: dark) {");
    for (_, light, dark) in NEUTRALS {
        // Writing to a string does not fail.
        let _ =
            write!(head, "svg [fill=\"{light}\"]{{fill:{dark}}}svg [stroke=\"{light}\"]{{stroke:{dark}}}");
    }
    head.push_str("}</style>\n");
    match svg.find("xmlns=\"http://www.w3.org/2000/svg\">") {
        Some(place) => {
            let end = place + svg[place..].find('>').map_or(0, |at| at + 1);
            format!("{}\n{head}{}", &svg[..end], svg[end..].trim_start())
        }
        None => svg.to_owned(),
    }
}

fn paint<B: DrawingBackend>(scene: &Scene, backend: &mut B, scale: f64) -> Result<(), PaintError> {
    let paper = Rect::new(0.0, 0.0, scene.width, scene.height);
    paint_shape(&Shape::Fill { rect: paper, color: Color::Paper, alpha: 1.0 }, backend, scale)?;
    for shape in &scene.shapes {
        paint_shape(shape, backend, scale)?;
    }
    for label in &scene.labels {
        paint_label(label, backend, scale)?;
    }
    Ok(())
}

fn paint_shape<B: DrawingBackend>(shape: &Shape, backend: &mut B, scale: f64) -> Result<(), PaintError> {
    let scaled = |points: &[(f64, f64)]| straight(points.iter().map(|&(x, y)| point(x, y, scale)));
    drawn(match shape {
        Shape::Fill { rect, color, alpha } => {
            let (from, to) = (point(rect.left, rect.top, scale), point(rect.right, rect.bottom, scale));
            backend.draw_rect(from, to, &pen(*color, *alpha, 1, scale), true)
        }
        Shape::Frame { rect, color, stroke } => {
            let Rect { left, top, right, bottom } = *rect;
            let outline = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
            backend.draw_path(scaled(&outline), &pen(*color, 1.0, *stroke, scale))
        }
        Shape::Hatch { rect, color } => backend.draw_path(scaled(&hatch(rect)), &pen(*color, 1.0, 1, scale)),
        Shape::Line { points, color, stroke, alpha } => {
            backend.draw_path(scaled(points), &pen(*color, *alpha, *stroke, scale))
        }
        Shape::Polygon { points, color } => backend.fill_polygon(scaled(points), &pen(*color, 1.0, 1, scale)),
        Shape::Circle { center, radius, color, filled } => {
            let radius = (radius * scale).round() as u32;
            backend.draw_circle(
                point(center.0, center.1, scale),
                radius,
                &pen(*color, 1.0, 2, scale),
                *filled,
            )
        }
    })
}

/// The points without those in the middle of a straight stretch, at which the drawing library bends a thick line.
fn straight(points: impl Iterator<Item = (i32, i32)>) -> Vec<(i32, i32)> {
    let mut kept: Vec<(i32, i32)> = Vec::new();
    for next in points {
        while let &[.., from, middle] = kept.as_slice() {
            let (before, after) = (difference(from, middle), difference(middle, next));
            let turn = before.0 * after.1 - before.1 * after.0;
            let onward = before.0 * after.0 + before.1 * after.1;
            if turn != 0 || onward < 0 {
                break;
            }
            kept.pop();
        }
        if kept.last() != Some(&next) {
            kept.push(next);
        }
    }
    kept
}

fn difference(from: (i32, i32), to: (i32, i32)) -> (i64, i64) {
    (i64::from(to.0) - i64::from(from.0), i64::from(to.1) - i64::from(from.1))
}

/// Slanting lines, clipped to the rectangle, as one path that goes from line to line along its border.
fn hatch(rect: &Rect) -> Vec<(f64, f64)> {
    let (width, height) = (rect.width(), rect.height());
    let mut path = Vec::new();
    let mut offset = HATCH_GAP / 2.0;
    let mut upwards = false;
    while offset < width + height {
        let low = (rect.left + (offset - height).max(0.0), rect.top + offset.min(height));
        let high = (rect.left + offset.min(width), rect.top + (offset - width).max(0.0));
        let (from, to) = if upwards { (low, high) } else { (high, low) };
        if let Some(&last) = path.last() {
            path.extend(along_the_border(rect, last, from));
        }
        path.extend([from, to]);
        upwards = !upwards;
        offset += HATCH_GAP;
    }
    path
}

/// The corner to turn at when going along the border, where the way is not straight.
fn along_the_border(rect: &Rect, from: (f64, f64), to: (f64, f64)) -> Option<(f64, f64)> {
    let straight = from.0 == to.0 || from.1 == to.1;
    let corner = if from.0 == rect.left || to.0 == rect.left {
        (rect.left, rect.bottom)
    } else {
        (rect.right, rect.top)
    };
    (!straight).then_some(corner)
}

fn paint_label<B: DrawingBackend>(label: &Label, backend: &mut B, scale: f64) -> Result<(), PaintError> {
    let style = font::style(label.size * scale, label.color).pos(Pos::new(HPos::Left, VPos::Center));
    drawn(backend.draw_text(&label.text, &style, point(label.rect.left, label.rect.middle(), scale)))
}

fn point(x: f64, y: f64, scale: f64) -> (i32, i32) {
    ((x * scale).round() as i32, (y * scale).round() as i32)
}

fn pen(color: Color, alpha: f64, stroke: u32, scale: f64) -> ShapeStyle {
    let (r, g, b) = color.rgb();
    let stroke_width = (f64::from(stroke) * scale).round().max(1.0) as u32;
    ShapeStyle { color: RGBAColor(r, g, b, alpha), filled: false, stroke_width }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::scene::Align;

    #[test]
    fn a_hatch_stays_within_its_rectangle() {
        for (width, height) in [(100.0, 14.0), (3.0, 14.0), (14.0, 14.0), (1.0, 1.0)] {
            let rect = Rect::new(10.0, 20.0, 10.0 + width, 20.0 + height);
            for (x, y) in hatch(&rect) {
                assert!(
                    x >= rect.left && x <= rect.right && y >= rect.top && y <= rect.bottom,
                    "{x} {y} {rect:?}"
                );
            }
        }
    }

    #[test]
    fn a_straight_stretch_has_no_points_in_between() {
        let stairs =
            [(0, 5), (10, 5), (10, 5), (20, 5), (20, 5), (30, 5), (30, 9), (40, 9), (40, 7), (40, 1)];
        assert_eq!(straight(stairs.into_iter()), [(0, 5), (30, 5), (30, 9), (40, 9), (40, 1)]);
        let back_and_forth = [(0, 0), (10, 0), (5, 0)];
        assert_eq!(straight(back_and_forth.into_iter()), back_and_forth);
    }

    /// The rows of pixels that a line through these points touches.
    fn rows(points: Vec<(f64, f64)>) -> Vec<usize> {
        let mut scene = Scene::new(100.0, 40.0);
        scene.add(Shape::Line { points, color: Color::Done, stroke: 2, alpha: 1.0 });
        let png = png(&scene).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let width = reader.next_frame(&mut pixels).unwrap().width as usize;
        let touched = |row: &&[u8]| row.iter().any(|value| *value != 0xFF);
        let all: Vec<_> = pixels.chunks(width * 3).enumerate().collect();
        all.into_iter().filter(|(_, row)| touched(row)).map(|(place, _)| place).collect()
    }

    #[test]
    fn a_line_through_several_points_of_a_stretch_does_not_bow() {
        let through = (1..=9).map(|x| (f64::from(x) * 10.0, 20.0)).collect();
        assert_eq!(rows(through), rows(vec![(10.0, 20.0), (90.0, 20.0)]));
    }

    #[test]
    fn text_is_escaped_and_follows_the_theme() {
        let mut scene = Scene::new(300.0, 40.0);
        scene.label((5.0, 20.0), Align::Left, "<b>lock & key</b>", 12.0, Color::Ink);
        let svg = svg(&scene, "a <script> title").unwrap();
        assert!(svg.contains("&lt;b&gt;lock &amp; key&lt;/b&gt;") && !svg.contains("<script>"), "{svg}");
        assert!(svg.contains("prefers-color-scheme: dark") && svg.contains("DejaVu Sans"), "{svg}");
    }

    #[test]
    fn a_png_holds_letters() {
        let mut scene = Scene::new(60.0, 40.0);
        let empty = png(&scene).unwrap();
        scene.label((5.0, 20.0), Align::Left, "lock", 12.0, Color::Ink);
        assert!(png(&scene).unwrap().len() > empty.len() + 50);
    }
}
