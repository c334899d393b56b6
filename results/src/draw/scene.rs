//! What is in a picture, and where? Shapes, and labels that keep clear of each other.

use super::{font, palette::Color};

/// Two labels of one line keep this far apart, pixels.
const LABEL_GAP: f64 = 5.0;

/// A rectangle, pixels, y downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rect {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Rect {
    pub(crate) fn new(left: f64, top: f64, right: f64, bottom: f64) -> Self {
        Self { left, top, right, bottom }
    }

    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(crate) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    pub(crate) fn middle(&self) -> f64 {
        f64::midpoint(self.top, self.bottom)
    }

    /// Do the insides of the two meet?
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    pub(crate) fn contains(&self, other: &Self) -> bool {
        self.left <= other.left
            && other.right <= self.right
            && self.top <= other.top
            && other.bottom <= self.bottom
    }
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// A filled rectangle.
    Fill { rect: Rect, color: Color, alpha: f64 },
    /// A rectangle's outline.
    Frame { rect: Rect, color: Color, stroke: u32 },
    /// Slanting lines within a rectangle.
    Hatch { rect: Rect, color: Color },
    /// A line through points.
    Line { points: Vec<(f64, f64)>, color: Color, stroke: u32, alpha: f64 },
    /// A filled polygon.
    Polygon { points: Vec<(f64, f64)>, color: Color },
    /// A disc or a ring.
    Circle { center: (f64, f64), radius: f64, color: Color, filled: bool },
}

/// Where a text's given point lies in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Center,
    Right,
}

/// A line of text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Label {
    pub(crate) text: String,
    pub(crate) size: f64,
    pub(crate) color: Color,
    /// The room that it takes.
    pub(crate) rect: Rect,
}

/// A picture, laid out.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) shapes: Vec<Shape>,
    pub(crate) labels: Vec<Label>,
    /// Labels for which there was no room.
    pub(crate) labels_left_out: usize,
    /// Room that no label may take: symbols that must stay visible.
    taken: Vec<Rect>,
}

impl Scene {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        let (shapes, labels, taken) = Default::default();
        Self { width, height, shapes, labels, labels_left_out: 0, taken }
    }

    pub(crate) fn add(&mut self, shape: Shape) {
        self.shapes.push(shape);
    }

    pub(crate) fn fill(&mut self, rect: Rect, color: Color, alpha: f64) {
        self.add(Shape::Fill { rect, color, alpha });
    }

    pub(crate) fn line(&mut self, points: &[(f64, f64)], color: Color, stroke: u32) {
        self.add(Shape::Line { points: points.to_vec(), color, stroke, alpha: 1.0 });
    }

    /// Keeps labels away from here.
    pub(crate) fn take(&mut self, rect: Rect) {
        self.taken.push(rect);
    }

    /// Writes a line of text with its given point in the vertical middle, if there is room: within the
    /// canvas, clear of every other label and of all that was [taken](Self::take).
    pub(crate) fn label(
        &mut self,
        at: (f64, f64),
        align: Align,
        text: &str,
        size: f64,
        color: Color,
    ) -> bool {
        let text = &printable(text);
        let rect = label_rect(at, align, text, size);
        let canvas = Rect::new(0.0, 0.0, self.width, self.height);
        let apart = Rect { left: rect.left - LABEL_GAP, right: rect.right + LABEL_GAP, ..rect };
        let free = canvas.contains(&rect)
            && !self.labels.iter().any(|label| label.rect.meets(&apart))
            && !self.taken.iter().any(|taken| taken.meets(&rect));
        if free {
            self.labels.push(Label { text: text.to_owned(), size, color, rect });
        } else {
            self.labels_left_out += 1;
        }
        free
    }

    /// How many elements the picture has.
    #[cfg(test)]
    pub(crate) fn marks(&self) -> usize {
        self.shapes.len() + self.labels.len()
    }
}

/// The text without what no document may hold: control characters, and what is no character at all.
fn printable(text: &str) -> String {
    let banned = |c: char| c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}');
    text.chars().map(|c| if banned(c) { ' ' } else { c }).collect()
}

/// The room that a line of text takes.
pub(crate) fn label_rect(at: (f64, f64), align: Align, text: &str, size: f64) -> Rect {
    let width = font::width(text, size);
    let left = match align {
        Align::Left => at.0,
        Align::Center => at.0 - width / 2.0,
        Align::Right => at.0 - width,
    };
    let half = size * font::LINE_HEIGHT / 2.0;
    Rect::new(left, at.1 - half, left + width, at.1 + half)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Fails where a label leaves the canvas or meets another one, or a shape leaves the canvas.
    pub(crate) fn assert_tidy(scene: &Scene) {
        let canvas = Rect::new(0.0, 0.0, scene.width, scene.height);
        for (place, label) in scene.labels.iter().enumerate() {
            assert!(canvas.contains(&label.rect), "leaves the canvas: {label:?}");
            for other in &scene.labels[place + 1..] {
                assert!(!label.rect.meets(&other.rect), "overlap: {label:?} and {other:?}");
            }
        }
        for shape in &scene.shapes {
            for (x, y) in corners(shape) {
                assert!(x >= 0.0 && x <= scene.width && y >= 0.0 && y <= scene.height, "off: {shape:?}");
            }
        }
    }

    fn corners(shape: &Shape) -> Vec<(f64, f64)> {
        match shape {
            Shape::Fill { rect, .. } | Shape::Frame { rect, .. } | Shape::Hatch { rect, .. } => {
                vec![(rect.left, rect.top), (rect.right, rect.bottom)]
            }
            Shape::Line { points, .. } | Shape::Polygon { points, .. } => points.clone(),
            Shape::Circle { center: (x, y), radius, .. } => {
                vec![(x - radius, y - radius), (x + radius, y + radius)]
            }
        }
    }

    #[test]
    fn control_characters_become_spaces() {
        assert_eq!(printable("a\u{1}b\nc\u{FFFF}"), "a b c ");
    }

    #[test]
    fn a_label_without_room_is_left_out_and_counted() {
        let mut scene = Scene::new(200.0, 40.0);
        assert!(scene.label((10.0, 20.0), Align::Left, "token 7", 12.0, Color::Ink));
        assert!(!scene.label((20.0, 20.0), Align::Left, "token 8", 12.0, Color::Ink));
        assert!(!scene.label((190.0, 20.0), Align::Left, "token 9", 12.0, Color::Ink));
        scene.take(Rect::new(100.0, 0.0, 120.0, 40.0));
        assert!(!scene.label((90.0, 20.0), Align::Left, "token 9", 12.0, Color::Ink));
        assert_eq!((scene.labels.len(), scene.labels_left_out), (1, 3));
        assert_tidy(&scene);
    }
}
