//! What do the signs mean? The legend, set in rows, never over data.

use super::{
    font,
    palette::Color,
    scene::{Align, Rect, Scene},
    signs::{self, Mark},
};

/// The size of a legend's letters, pixels.
const TEXT_SIZE: f64 = 11.0;

const ROW: f64 = 18.0;
const SIGN_WIDTH: f64 = 22.0;
const GAP: f64 = 18.0;

/// A sign that the legend explains.
#[derive(Clone, Copy)]
pub(crate) enum Sign {
    Hold,
    PastTerm,
    TermEnd,
    Belief,
    Fault,
    Finding,
    End,
    Mark(Mark, Color),
}

/// Signs and what they mean.
pub(crate) type Entries<'e> = &'e [(Sign, &'e str)];

/// The place of each sign, relative to the legend's corner.
fn places(entries: Entries<'_>, width: f64) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (0.0, 0.0);
    let mut places = Vec::new();
    for (_, text) in entries {
        let needed = SIGN_WIDTH + font::width(text, TEXT_SIZE);
        if x > 0.0 && x + needed > width {
            (x, y) = (0.0, y + ROW);
        }
        places.push((x, y));
        x += needed + GAP;
    }
    places
}

/// The height of the legend, set in this width.
pub(crate) fn height(entries: Entries<'_>, width: f64) -> f64 {
    places(entries, width).last().map_or(0.0, |(_, y)| y + ROW)
}

/// Draws the legend with its upper left corner here, in this width.
pub(crate) fn draw(scene: &mut Scene, entries: Entries<'_>, (left, top): (f64, f64), width: f64) {
    for ((sign, text), (x, y)) in entries.iter().zip(places(entries, width)) {
        let (x, y) = (left + x, top + y + ROW / 2.0);
        draw_sign(scene, *sign, x, y);
        scene.label((x + SIGN_WIDTH, y), Align::Left, text, TEXT_SIZE, Color::Muted);
    }
}

fn draw_sign(scene: &mut Scene, sign: Sign, x: f64, y: f64) {
    let bar = Rect::new(x, y - 5.0, x + 17.0, y + 5.0);
    match sign {
        Sign::Hold => scene.fill(bar, Color::Hold, 1.0),
        Sign::PastTerm => signs::draw_striped(scene, bar, Color::Hold),
        Sign::TermEnd => signs::draw_term_end(scene, x + 8.0, y - 6.0, y + 6.0),
        Sign::Belief => scene.fill(Rect::new(x, y - 2.5, x + 17.0, y + 2.5), Color::Belief, 1.0),
        Sign::Fault => scene.fill(bar, Color::Fault, signs::FAULT_ALPHA),
        Sign::Finding => signs::draw_ring(scene, (x + 8.0, y)),
        Sign::End => signs::draw_cross(scene, (x + 8.0, y), Color::Rejected),
        Sign::Mark(mark, color) => signs::draw_mark(scene, mark, (x + 8.0, y), color),
    }
}
