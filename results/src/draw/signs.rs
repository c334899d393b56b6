//! What do the signs look like? Marks of operations, bars, bands and rings: the same in every picture.

use fencepost_checker::history::{Function, Released};

use super::{
    palette::Color,
    scene::{Rect, Scene, Shape},
};
use crate::recording::{Operation, Outcome};

/// How much of the ground a fault's band covers.
pub(crate) const FAULT_ALPHA: f64 = 0.35;

/// Half the size of a mark.
pub(crate) const RADIUS: f64 = 4.5;

/// The sign of a kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Acquire,
    Release,
    Read,
    Write,
    Renew,
}

/// A striped bar: not certain.
pub(crate) fn draw_striped(scene: &mut Scene, rect: Rect, color: Color) {
    scene.fill(rect, Color::Paper, 0.6);
    if rect.width() >= 4.0 {
        scene.add(Shape::Hatch { rect, color });
    }
    scene.add(Shape::Frame { rect, color, stroke: 1 });
}

/// The end of a lease.
pub(crate) fn draw_term_end(scene: &mut Scene, x: f64, top: f64, bottom: f64) {
    scene.line(&[(x, top), (x, bottom)], Color::Ink, 2);
}

/// Draws the sign of an operation.
pub(crate) fn draw_mark(scene: &mut Scene, mark: Mark, (x, y): (f64, f64), color: Color) {
    // What is ordinary keeps in the background.
    let r = if color == Color::Muted { RADIUS - 1.5 } else { RADIUS };
    let points = match mark {
        Mark::Acquire => vec![(x, y - r), (x + r, y + r), (x - r, y + r)],
        Mark::Release => vec![(x, y + r), (x + r, y - r), (x - r, y - r)],
        Mark::Renew => vec![(x, y - r), (x + r, y), (x, y + r), (x - r, y)],
        Mark::Write => vec![(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)],
        Mark::Read => {
            return scene.add(Shape::Circle { center: (x, y), radius: r - 0.5, color, filled: false });
        }
    };
    scene.add(Shape::Polygon { points: points.clone(), color });
    if color == Color::Unknown {
        // Yellow on white needs an outline.
        let outline = points.iter().chain(points.first()).copied().collect();
        scene.add(Shape::Line { points: outline, color: Color::Ink, stroke: 1, alpha: 1.0 });
    }
}

/// Draws the sign of an end: of belief, by notice, or of a process.
pub(crate) fn draw_cross(scene: &mut Scene, (x, y): (f64, f64), color: Color) {
    let r = RADIUS;
    scene.line(&[(x - r, y - r), (x + r, y + r)], color, 2);
    scene.line(&[(x - r, y + r), (x + r, y - r)], color, 2);
    scene.take(Rect::new(x - r, y - r, x + r, y + r));
}

/// Marks what is part of the proof.
pub(crate) fn draw_ring(scene: &mut Scene, center: (f64, f64)) {
    scene.add(Shape::Circle { center, radius: RADIUS + 3.5, color: Color::Finding, filled: false });
}

/// The sign of an operation; nothing for those that are not drawn.
pub(crate) fn mark_of(operation: &Operation) -> Option<Mark> {
    Some(match operation.f {
        Function::Acquire => Mark::Acquire,
        Function::Release => Mark::Release,
        Function::Read => Mark::Read,
        Function::Write | Function::Effect => Mark::Write,
        Function::Renew | Function::Renewed | Function::Held => Mark::Renew,
        _ => return None,
    })
}

/// The colour of an operation's outcome.
pub(crate) fn color_of(operation: &Operation) -> Color {
    match operation.outcome {
        Outcome::Ok if operation.released == Some(Released::No) => Color::Rejected,
        Outcome::Ok => Color::Done,
        Outcome::Busy => Color::Muted,
        Outcome::Failed => Color::Rejected,
        Outcome::Unknown => Color::Unknown,
    }
}
