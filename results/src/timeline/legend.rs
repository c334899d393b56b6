//! What do the signs mean? The legend, set in rows below the axis.

use super::layout::{LABEL_SIZE, Layout};
use crate::draw::{
    font,
    palette::Color,
    scene::{Align, Rect, Scene},
};

const ROW: f64 = 18.0;
const SIGN_WIDTH: f64 = 22.0;
const GAP: f64 = 18.0;

/// A sign that the legend explains.
#[derive(Clone, Copy)]
enum Sign {
    Hold,
    PastTerm,
    TermEnd,
    Belief,
    Fault,
    Finding,
    End,
    Mark(super::lanes::Mark, Color),
}

const SIGNS: &[(Sign, &str)] = &[
    (Sign::Hold, "lock held for certain"),
    (Sign::PastTerm, "past its lease, or unsure"),
    (Sign::TermEnd, "lease ends"),
    (Sign::Belief, "client believes it holds"),
    (Sign::Fault, "fault in force"),
    (Sign::Finding, "part of the finding"),
    (Sign::Mark(super::lanes::Mark::Acquire, Color::Done), "acquire"),
    (Sign::Mark(super::lanes::Mark::Release, Color::Done), "release"),
    (Sign::Mark(super::lanes::Mark::Write, Color::Done), "write"),
    (Sign::Mark(super::lanes::Mark::Read, Color::Done), "read"),
    (Sign::Mark(super::lanes::Mark::Renew, Color::Done), "renew, ask"),
    (Sign::Mark(super::lanes::Mark::Write, Color::Rejected), "turned away"),
    (Sign::Mark(super::lanes::Mark::Write, Color::Unknown), "outcome unknown"),
    (Sign::Mark(super::lanes::Mark::Acquire, Color::Muted), "lock busy"),
    (Sign::End, "told that it is lost, or died"),
];

/// The place of each sign, relative to the legend's corner.
fn places(width: f64) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (0.0, 0.0);
    let mut places = Vec::new();
    for (_, text) in SIGNS {
        let needed = SIGN_WIDTH + font::width(text, LABEL_SIZE);
        if x > 0.0 && x + needed > width {
            (x, y) = (0.0, y + ROW);
        }
        places.push((x, y));
        x += needed + GAP;
    }
    places
}

/// The height of the legend, set in this width.
pub(super) fn height(width: f64) -> f64 {
    places(width).last().map_or(0.0, |(_, y)| y + ROW)
}

/// Draws the legend.
pub(super) fn draw(scene: &mut Scene, layout: &Layout) {
    let left = layout.width - layout.plot.right;
    let width = layout.width - 2.0 * left;
    for ((sign, text), (x, y)) in SIGNS.iter().zip(places(width)) {
        let (x, y) = (left + x, layout.legend_top + y + ROW / 2.0);
        draw_sign(scene, *sign, x, y);
        scene.label((x + SIGN_WIDTH, y), Align::Left, text, LABEL_SIZE, Color::Muted);
    }
}

fn draw_sign(scene: &mut Scene, sign: Sign, x: f64, y: f64) {
    let bar = Rect::new(x, y - 5.0, x + 17.0, y + 5.0);
    match sign {
        Sign::Hold => scene.fill(bar, Color::Hold, 1.0),
        Sign::PastTerm => super::lanes::draw_striped(scene, bar, Color::Hold),
        Sign::TermEnd => super::lanes::draw_term_end(scene, x + 8.0, y - 6.0, y + 6.0),
        Sign::Belief => scene.fill(Rect::new(x, y - 2.5, x + 17.0, y + 2.5), Color::Belief, 1.0),
        Sign::Fault => scene.fill(bar, Color::Fault, super::lanes::FAULT_ALPHA),
        Sign::Finding => super::lanes::draw_ring(scene, (x + 8.0, y)),
        Sign::End => super::lanes::draw_cross(scene, (x + 8.0, y), Color::Rejected),
        Sign::Mark(mark, color) => super::lanes::draw_mark(scene, mark, (x + 8.0, y), color),
    }
}
