//! What goes into the lanes: holds, operations, beliefs, writes, faults, and the finding across them.

use fencepost_checker::history::{Function, Released};

use super::{
    layout::{FAULT_ROW, HOLD_ROW, LABEL_SIZE, Lane, Layout, Place, resource_faults, server_faults},
    view::View,
};
use crate::{
    draw::{
        font,
        palette::Color,
        scene::{Align, Rect, Scene, Shape, label_rect},
        signs::{
            FAULT_ALPHA, RADIUS, color_of, draw_cross, draw_mark, draw_ring, draw_striped, draw_term_end,
            mark_of,
        },
    },
    recording::{Fault, Hold, Operation, Outcome},
};

/// Draws all data. What matters most is labelled first, as long as there is room.
pub(super) fn draw(scene: &mut Scene, view: &View<'_>, layout: &Layout) {
    for place in &layout.places {
        let faults = match &place.lane {
            Lane::Lock(_) => server_faults(view),
            Lane::Client(client) => view.faults_of(client),
            Lane::Key(_) => resource_faults(view),
        };
        for fault in &faults {
            draw_fault(scene, layout, place, fault, &faults);
        }
    }
    draw_finding(scene, view, layout);
    for place in &layout.places {
        match &place.lane {
            Lane::Lock(lock) => draw_holds(scene, view, layout, place, lock),
            Lane::Client(client) => draw_client(scene, view, layout, place, client),
            Lane::Key(key) => draw_key(scene, view, layout, place, key),
        }
    }
    draw_link(scene, view, layout);
}

fn draw_fault(scene: &mut Scene, layout: &Layout, place: &Place, fault: &Fault, all: &[&Fault]) {
    let (left, right) = (layout.x(fault.begin), layout.x(fault.end));
    let right = right.max(left + 1.5).min(layout.plot.right);
    scene.fill(Rect::new(left, place.rect.top, right, place.rect.bottom), Color::Fault, FAULT_ALPHA);
    let text = fault_name(fault);
    let y = place.rect.top + FAULT_ROW / 2.0 + 1.0;
    let fits_right = font::width(&text, LABEL_SIZE) <= layout.plot.right - left - 6.0;
    if fits_right {
        scene.label((left + 4.0, y), Align::Left, &text, LABEL_SIZE, Color::Ink);
        return;
    }
    let begin = left - 4.0 - font::width(&text, LABEL_SIZE);
    // Within another fault's band it would be taken for that one's name.
    let in_other = all.iter().any(|other| layout.x(other.end) > begin && layout.x(other.begin) < left);
    if begin >= layout.plot.left && !in_other {
        scene.label((left - 4.0, y), Align::Right, &text, LABEL_SIZE, Color::Ink);
    }
}

/// A fault's name, and how long it lasted unless that was a moment.
fn fault_name(fault: &Fault) -> String {
    let ms = (fault.end - fault.begin) as f64 / 1e6;
    match ms {
        ..10.0 => fault.f.clone(),
        10.0..1000.0 => format!("{} {ms:.0} ms", fault.f),
        _ => format!("{} {:.2} s", fault.f, ms / 1e3),
    }
}

/// The instant of the finding, across all lanes, and those of other findings in the row above them.
fn draw_finding(scene: &mut Scene, view: &View<'_>, layout: &Layout) {
    let y = layout.finding_row + 8.0;
    let named = view.finding.as_ref().map(|finding| (finding.at, finding.id.as_str()));
    if let Some((at, _)) = named {
        layout.draw_cut(scene, at, Color::Finding);
    }
    let others = view.other_findings.iter().map(|(at, id)| (*at, id.as_str()));
    for (place, (at, id)) in named.into_iter().chain(others).enumerate() {
        let text = if place == 0 { format!("{id} at {:.1} ms", at as f64 / 1e6) } else { id.to_owned() };
        let text = font::fit(&text, LABEL_SIZE, layout.plot.width() / 2.0);
        let half = font::width(&text, LABEL_SIZE) / 2.0;
        let x = layout.x(at);
        let middle = x.clamp(layout.plot.left + half, layout.plot.right - half);
        if scene.label((middle, y), Align::Center, &text, LABEL_SIZE, Color::Finding) {
            let tip = layout.plot.top - 1.0;
            let points = vec![(x - 4.0, tip - 6.0), (x + 4.0, tip - 6.0), (x, tip)];
            scene.add(Shape::Polygon { points, color: Color::Finding });
        }
    }
}

/// The bar of a hold, if its lane has room for it.
fn hold_bar(layout: &Layout, place: &Place, hold: &Hold) -> Option<Rect> {
    let (_, row) = place.rows.iter().find(|(attempt, _)| *attempt == hold.attempt)?;
    let top = place.rect.top + if place.fault_row { FAULT_ROW } else { 0.0 } + 4.0 + *row as f64 * HOLD_ROW;
    let (left, right) = (layout.x(hold.begin), layout.x(hold.believed_end));
    Some(Rect::new(left, top, right.max(left + 1.0).min(layout.plot.right), top + HOLD_ROW - 4.0))
}

fn draw_holds(scene: &mut Scene, view: &View<'_>, layout: &Layout, place: &Place, lock: &str) {
    let mut holds: Vec<_> = view.holds.iter().copied().filter(|hold| hold.lock == lock).collect();
    holds.sort_by_key(|hold| view.meets(hold.attempt));
    let bars: Vec<_> =
        holds.iter().filter_map(|hold| hold_bar(layout, place, hold).map(|bar| (*hold, bar))).collect();
    let mut beside = Vec::new();
    for (hold, bar) in &bars {
        draw_hold(scene, view, layout, hold, *bar);
        // A hold of the finding is named in full, if need be beside its bar.
        let free = free_beside(layout, hold, *bar, &bars);
        let forms = if view.meets(hold.attempt) && free { 1 } else { 3 };
        if !name_within(scene, layout, hold, *bar, forms) && free {
            beside.push((hold, bar));
        }
    }
    for (hold, bar) in beside.into_iter().rev() {
        scene.label(
            (bar.right + 4.0, bar.middle()),
            Align::Left,
            &hold_name(hold, "token "),
            LABEL_SIZE,
            Color::Ink,
        );
    }
}

/// Is there room for a hold's name to the right of its bar?
fn free_beside(layout: &Layout, hold: &Hold, bar: Rect, bars: &[(&Hold, Rect)]) -> bool {
    let right = bar.right + 4.0 + font::width(&hold_name(hold, "token "), LABEL_SIZE) + 4.0;
    let room = Rect { left: bar.right + 1.0, right, ..bar };
    right <= layout.plot.right && !bars.iter().any(|(_, other)| other.meets(&room))
}

fn draw_hold(scene: &mut Scene, view: &View<'_>, layout: &Layout, hold: &Hold, bar: Rect) {
    let mut unsure_from = bar.left;
    for (begin, end) in &hold.segments {
        let (left, right) = (layout.x(*begin).max(bar.left), layout.x(*end));
        let certain = Rect { left, right: right.max(left + 1.0).min(bar.right), ..bar };
        draw_unsure(scene, Rect { left: unsure_from, right: certain.left, ..bar });
        scene.fill(certain, Color::Hold, 1.0);
        unsure_from = certain.right;
    }
    draw_unsure(scene, Rect { left: unsure_from, ..bar });
    let called = layout.x(hold.called);
    if bar.left - called > 3.0 {
        draw_striped(scene, Rect { left: called, right: bar.left, ..bar }, Color::Hold);
    }
    for expired in hold.expiries().filter(|at| (view.window.0..view.window.1).contains(at)) {
        draw_term_end(scene, layout.x(expired), bar.top - 2.0, bar.bottom + 2.0);
    }
    if view.meets(hold.attempt) {
        scene.add(Shape::Frame { rect: bar, color: Color::Finding, stroke: 2 });
    }
}

fn draw_unsure(scene: &mut Scene, rect: Rect) {
    if rect.width() > 1.0 {
        draw_striped(scene, rect, Color::Hold);
    }
}

/// The first certain part of a bar that can be seen.
fn certain_part(layout: &Layout, hold: &Hold, bar: Rect) -> Rect {
    let part = |(begin, end): &(u64, u64)| {
        let left = layout.x(*begin).max(bar.left);
        Rect { left, right: layout.x(*end).max(left + 1.0).min(bar.right), ..bar }
    };
    hold.segments
        .iter()
        .map(part)
        .find(|part| part.width() > 1.0)
        .unwrap_or(Rect { right: bar.left + 1.0, ..bar })
}

fn hold_name(hold: &Hold, word: &str) -> String {
    let token = hold.token.map(|token| format!(" · {word}{token}"));
    format!("{}{}", hold.process, token.unwrap_or_default())
}

/// Writes whose hold it is into its bar: in full, in short, or the token alone, as there is room.
fn name_within(scene: &mut Scene, layout: &Layout, hold: &Hold, bar: Rect, forms: usize) -> bool {
    let certain = certain_part(layout, hold, bar);
    let token = hold.token.map(|token| token.to_string());
    let texts = [Some(hold_name(hold, "token ")), Some(hold_name(hold, "")), token];
    for text in texts.iter().take(forms).flatten() {
        let width = font::width(text, LABEL_SIZE);
        if width + 6.0 <= certain.width() {
            let left = certain.left + if width + 12.0 <= certain.width() { 5.0 } else { 3.0 };
            return scene.label((left, bar.middle()), Align::Left, text, LABEL_SIZE, Color::OnHold);
        }
    }
    false
}

fn draw_client(scene: &mut Scene, view: &View<'_>, layout: &Layout, place: &Place, client: &str) {
    let bottom = place.rect.bottom - 5.0;
    for hold in view.holds.iter().filter(|hold| hold.process == client) {
        let (left, right) = (layout.x(hold.begin), layout.x(hold.believed_end));
        let right = right.max(left + 1.0).min(layout.plot.right);
        scene.fill(Rect::new(left, bottom - 6.0, right, bottom), Color::Belief, 1.0);
    }
    let mut operations: Vec<_> = view.operations.iter().copied().filter(|o| o.process == client).collect();
    // Marks of the proof come last, on top; their labels come first.
    operations.sort_by_key(|operation| is_proof(view, operation));
    let row = |operation: &Operation| {
        let at_resource = matches!(operation.f, Function::Read | Function::Write | Function::Effect);
        if at_resource { bottom - 34.0 } else { bottom - 16.0 }
    };
    for operation in &operations {
        draw_operation(scene, view, layout, operation, row(operation));
    }
    let mark = |operation: &Operation| (inside(layout, layout.x(operation.end)), row(operation));
    let shown = operations.iter().filter(|operation| mark_of(operation).is_some());
    let moments = view.moments.iter().filter(|moment| moment.process == client);
    let moments = moments.map(|moment| (inside(layout, layout.x(moment.at)), bottom - 16.0));
    let marks: Vec<_> = shown.map(|operation| mark(operation)).chain(moments).collect();
    for moment in view.moments.iter().filter(|moment| moment.process == client) {
        let at = (inside(layout, layout.x(moment.at)), bottom - 16.0);
        draw_cross(scene, at, Color::Rejected);
        label_beside(scene, layout, &Named { at, others: &marks }, at.1, moment.what);
    }
    for operation in operations.iter().rev().filter(|operation| is_worth_words(view, operation)) {
        if let Some(text) = told(operation) {
            let at = mark(operation);
            label_beside(scene, layout, &Named { at, others: &marks }, at.1, &text);
        }
    }
}

/// Ordinary operations are named only where there are few of them.
fn is_worth_words(view: &View<'_>, operation: &Operation) -> bool {
    const FEW: usize = 80;
    let odd = matches!(operation.outcome, Outcome::Failed | Outcome::Unknown)
        || operation.released == Some(Released::No);
    view.operations.len() <= FEW || odd || is_proof(view, operation)
}

fn is_proof(view: &View<'_>, operation: &Operation) -> bool {
    view.finding.as_ref().is_some_and(|finding| finding.is_proven_by(operation))
}

fn draw_operation(scene: &mut Scene, view: &View<'_>, layout: &Layout, operation: &Operation, y: f64) {
    let Some(mark) = mark_of(operation) else { return };
    let (left, x) = (layout.x(operation.start), layout.x(operation.end));
    let color = color_of(operation);
    if x - left > 2.0 * RADIUS {
        scene.line(&[(left, y), (x, y)], color, 2);
        scene.line(&[(left, y - 3.0), (left, y + 3.0)], color, 2);
        scene.take(Rect::new(left, y - 2.0, x, y + 2.0));
    }
    let x = inside(layout, x);
    draw_mark(scene, mark, (x, y), color);
    scene.take(Rect::new(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS));
    if is_proof(view, operation) {
        draw_ring(scene, (x, y));
    }
}

/// Keeps a mark's whole width within the plot.
fn inside(layout: &Layout, x: f64) -> f64 {
    x.clamp(layout.plot.left + RADIUS + 4.0, layout.plot.right - RADIUS - 4.0)
}

/// A mark that a label names, among others that it must not seem to name.
struct Named<'m> {
    at: (f64, f64),
    others: &'m [(f64, f64)],
}

impl Named<'_> {
    /// Is a label that takes this room nearer to its mark than to any other? From one in its very place nothing tells
    /// it apart.
    fn owns(&self, label: &Rect) -> bool {
        const SAME: f64 = 1.5;
        const AS_NEAR: f64 = 0.5;
        let from_label = |(x, y): (f64, f64)| {
            let (aside, above) = (x - x.clamp(label.left, label.right), y - y.clamp(label.top, label.bottom));
            let middle = f64::midpoint(label.left, label.right);
            (aside.hypot(above), (x - middle).hypot(y - label.middle()))
        };
        let mine = from_label(self.at);
        let apart = |other: &&(f64, f64)| (other.0 - self.at.0).hypot(other.1 - self.at.1) > SAME;
        self.others
            .iter()
            .filter(apart)
            .map(|other| from_label(*other))
            .all(|other| other.0 > mine.0 + AS_NEAR || (other.0 > mine.0 - AS_NEAR && other.1 > mine.1))
    }
}

/// Writes a label to the right of a mark, or to its left, where there is room and it is nobody else's.
fn label_beside(scene: &mut Scene, layout: &Layout, mark: &Named<'_>, y: f64, text: &str) {
    let (x, wide, narrow) = (mark.at.0, RADIUS + 6.0, RADIUS + 5.0);
    let places = [wide, narrow].into_iter().flat_map(|gap| [(x + gap, Align::Left), (x - gap, Align::Right)]);
    for (x, align) in places {
        let rect = label_rect((x, y), align, text, LABEL_SIZE);
        let fits = rect.left >= layout.plot.left && rect.right <= layout.plot.right;
        if fits && mark.owns(&rect) && scene.label((x, y), align, text, LABEL_SIZE, Color::Ink) {
            return;
        }
    }
}

/// Writes a label above a mark, kept within the plot.
fn label_above(scene: &mut Scene, layout: &Layout, mark: &Named<'_>, y: f64, text: &str) -> bool {
    let half = font::width(text, LABEL_SIZE) / 2.0 + 1.0;
    if 2.0 * half >= layout.plot.width() {
        return false;
    }
    let x = mark.at.0.clamp(layout.plot.left + half, layout.plot.right - half);
    mark.owns(&label_rect((x, y), Align::Center, text, LABEL_SIZE))
        && scene.label((x, y), Align::Center, text, LABEL_SIZE, Color::Ink)
}

/// A few words on an operation that is worth some.
fn told(operation: &Operation) -> Option<String> {
    let token = || operation.token.map(|token| format!(" {token}")).unwrap_or_default();
    let text = match (&operation.f, operation.outcome) {
        (_, Outcome::Busy) => return None,
        (Function::Acquire, Outcome::Ok) => format!("acquired{}", token()),
        (Function::Write, Outcome::Ok) => format!("wrote{}", token()),
        (Function::Write, Outcome::Failed) => format!("rejected{}", token()),
        (Function::Release, Outcome::Ok) if operation.released == Some(Released::No) => {
            "was not held".to_owned()
        }
        (Function::Release, Outcome::Ok) => "released".to_owned(),
        (Function::Renew | Function::Renewed, Outcome::Ok) => "renewed".to_owned(),
        (Function::Read, Outcome::Ok) => "read".to_owned(),
        (_, Outcome::Unknown) => "unknown".to_owned(),
        _ => return None,
    };
    Some(text)
}

fn draw_key(scene: &mut Scene, view: &View<'_>, layout: &Layout, place: &Place, key: &str) {
    let y = place.rect.bottom - 14.0;
    scene.line(&[(place.rect.left, y), (place.rect.right, y)], Color::Grid, 1);
    let on_key = |operation: &&&Operation| operation.key.as_deref() == Some(key);
    let mut operations: Vec<_> = view.operations.iter().filter(on_key).copied().collect();
    operations.sort_by_key(|operation| is_proof(view, operation));
    for operation in &operations {
        let Some(mark) = mark_of(operation) else { continue };
        let at = (inside(layout, layout.x(operation.end)), y);
        draw_mark(scene, mark, at, color_of(operation));
        if is_proof(view, operation) {
            draw_ring(scene, at);
        }
    }
    // Who wrote is told; readers are not named.
    let writes = || operations.iter().filter(|operation| operation.f == Function::Write);
    let place = |operation: &Operation| (inside(layout, layout.x(operation.end)), y);
    let marks: Vec<_> = writes().map(|operation| place(operation)).collect();
    for operation in writes().rev() {
        let token = view.token_of(operation).map(|token| format!(" · {token}")).unwrap_or_default();
        let text = format!("{}{token}", operation.process);
        let (mark, above) = (Named { at: place(operation), others: &marks }, y - RADIUS - 11.0);
        // Above its mark; where the line of the finding runs there, beside it.
        if !label_above(scene, layout, &mark, above, &text) {
            label_beside(scene, layout, &mark, above, &text);
        }
    }
}

/// Links the first two holds that meet: across the time that they share, or from one to the next.
fn draw_link(scene: &mut Scene, view: &View<'_>, layout: &Layout) {
    let Some(finding) = &view.finding else { return };
    let bar = |attempt: &u64| {
        let hold = view.holds.iter().find(|hold| hold.attempt == *attempt)?;
        let in_lane = |place: &Place| matches!(&place.lane, Lane::Lock(lock) if *lock == hold.lock);
        let place = layout.places.iter().find(|place| in_lane(place))?;
        hold_bar(layout, place, hold)
    };
    let bars: Vec<_> = finding.attempts.iter().filter_map(bar).take(2).collect();
    let &[one, other] = bars.as_slice() else { return };
    let (left, right) = (one.left.max(other.left), one.right.min(other.right));
    let (from, to) = if left < right {
        // Towards the end: names stand at the begin of the bars.
        let x = left + 0.85 * (right - left);
        let (upper, lower) = if one.top < other.top { (one, other) } else { (other, one) };
        ((x, upper.middle()), (x, lower.middle()))
    } else {
        let (earlier, later) = if one.left < other.left { (one, other) } else { (other, one) };
        ((earlier.right, earlier.middle()), (later.left, later.middle()))
    };
    scene.line(&[from, to], Color::Finding, 2);
    for center in [from, to] {
        scene.add(Shape::Circle { center, radius: 3.5, color: Color::Finding, filled: true });
    }
}
