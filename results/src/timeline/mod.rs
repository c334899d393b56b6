//! Who held the lock, and who wrote? The run as a picture, round its first finding.
//!
//! ```text
//!   daily-sales   ████ c1 · 1 ██████|▨▨▨▨▨▨▨▨▨▨        holds: certain, then past the lease
//!                             ██ c2 · 2 ██
//!   c1            ▲ ░░░░░░░░░░░░░░░░░░░░░░░ ■ ▼        operations, faults, and what it believes
//!   c2                        ▲  ■ ▼
//!   report                       ■          ◉          writes that the resource took, with their tokens
//! ```

mod lanes;
mod layout;
mod view;

use fencepost_checker::verdict::Verdict;

use crate::{
    draw::{
        legend::{self, Sign},
        palette::Color,
        scene::Scene,
        signs::Mark,
    },
    recording::Recording,
};

/// The most elements that a timeline may have.
#[cfg(test)]
const MARKS_MAX: usize = 2_000;

/// The signs that a timeline uses.
const SIGNS: &[(Sign, &str)] = &[
    (Sign::Hold, "lock held for certain"),
    (Sign::PastTerm, "past its lease, or unsure"),
    (Sign::TermEnd, "lease ends"),
    (Sign::Belief, "client believes it holds"),
    (Sign::Fault, "fault in force"),
    (Sign::Finding, "part of the finding"),
    (Sign::Mark(Mark::Acquire, Color::Done), "acquire"),
    (Sign::Mark(Mark::Release, Color::Done), "release"),
    (Sign::Mark(Mark::Write, Color::Done), "write"),
    (Sign::Mark(Mark::Read, Color::Done), "read"),
    (Sign::Mark(Mark::Renew, Color::Done), "renew, ask"),
    (Sign::Mark(Mark::Write, Color::Rejected), "turned away"),
    (Sign::Mark(Mark::Write, Color::Unknown), "outcome unknown"),
    (Sign::Mark(Mark::Acquire, Color::Muted), "lock busy"),
    (Sign::End, "told that it is lost, or died"),
];

/// Lays out the timeline of a run.
pub(crate) fn scene(recording: &Recording, verdict: Option<&Verdict>) -> Scene {
    let view = view::View::new(recording, verdict);
    let layout = layout::Layout::new(&view, verdict);
    let mut scene = Scene::new(layout.width, layout.height);
    layout.draw_frame(&mut scene);
    lanes::draw(&mut scene, &view, &layout);
    legend::draw(&mut scene, SIGNS, layout.legend, layout.legend_width());
    scene
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        draw::{paint, scene::tests::assert_tidy},
        samples,
    };

    /// Keeps the picture for a look at it, if `FENCEPOST_PICTURES` names a directory.
    fn keep(name: &str, scene: &Scene) {
        if let Some(dir) = std::env::var_os("FENCEPOST_PICTURES") {
            let dir = std::path::PathBuf::from(dir);
            std::fs::write(dir.join(format!("{name}.svg")), paint::svg(scene, name).unwrap()).unwrap();
            std::fs::write(dir.join(format!("{name}.png")), paint::png(scene).unwrap()).unwrap();
        }
    }

    fn texts(scene: &Scene) -> Vec<&str> {
        scene.labels.iter().map(|label| label.text.as_str()).collect()
    }

    #[test]
    fn the_classic_story_is_told() {
        let recording = Recording::parse(samples::stale_write().as_bytes()).unwrap();
        let scene = scene(&recording, Some(&samples::stale_write_verdict()));
        keep("stale-write", &scene);
        assert_tidy(&scene);
        let texts = texts(&scene);
        for expected in ["daily-sales", "c1", "c2", "report", "c1 · token 1", "c2 · token 2"] {
            assert!(texts.contains(&expected), "no '{expected}' in {texts:?}");
        }
        assert!(texts.iter().any(|text| text.starts_with("stale-write at 1551.5 ms")), "{texts:?}");
    }

    #[test]
    fn the_headline_is_shown_whole() {
        let mut verdict = samples::stale_write_verdict();
        verdict.valid = fencepost_checker::verdict::Valid::True;
        verdict.summary =
            "no promise was broken in 116 holds and 116 accepted writes, so at 95 % confidence fewer \
                           than 3 in 100 break one. Beside that: 2 stuck-lock, 11 starvation"
                .to_owned();
        let recording = Recording::parse(samples::stale_write().as_bytes()).unwrap();
        let scene = scene(&recording, Some(&verdict));
        keep("headline", &scene);
        assert_tidy(&scene);
        let lines: Vec<_> = scene.labels.iter().filter(|label| label.size == 15.0).collect();
        let whole = lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join(" ");
        assert!(whole.ends_with(&verdict.summary), "{whole}");
    }

    #[test]
    fn small_and_large_runs_keep_within_bounds() {
        for tenures in [0, 1, 40, 5_000] {
            let text = samples::busy_run(tenures, 6);
            let recording = Recording::parse(text.as_bytes()).unwrap();
            let scene = scene(&recording, None);
            keep(&format!("busy-{tenures}"), &scene);
            assert_tidy(&scene);
            assert!(scene.marks() <= MARKS_MAX, "{} marks for {tenures} tenures", scene.marks());
        }
    }

    #[test]
    fn long_names_and_many_clients_keep_tidy() {
        let text = samples::busy_run(200, 40).replace("daily-sales", &"a very long lock name ".repeat(8));
        let recording = Recording::parse(text.as_bytes()).unwrap();
        let scene = scene(&recording, Some(&samples::stale_write_verdict()));
        keep("crowded", &scene);
        assert_tidy(&scene);
    }

    /// What a mark's outline says it is: its points, and whether the first is above the others.
    fn form(points: &[(f64, f64)]) -> &'static str {
        match points {
            [tip, side, _] if tip.1 < side.1 => "acquire",
            [_, _, _] => "release",
            [tip, side, ..] if tip.1 < side.1 => "renew",
            _ => "write",
        }
    }

    /// Fails where a word on an operation is nearer to a mark of another kind.
    fn assert_words_stand_by_their_marks(scene: &Scene) {
        let words = [
            ("acquired", "acquire"),
            ("released", "release"),
            ("was not held", "release"),
            ("renewed", "renew"),
            ("wrote", "write"),
            ("rejected", "write"),
        ];
        let marks: Vec<_> = scene
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                crate::draw::scene::Shape::Polygon { points, color } if *color != Color::Finding => {
                    let (left, right) = (points.iter().map(|p| p.0), points.iter().map(|p| p.0));
                    let (top, bottom) = (points.iter().map(|p| p.1), points.iter().map(|p| p.1));
                    let x = f64::midpoint(left.fold(f64::MAX, f64::min), right.fold(0.0, f64::max));
                    let y = f64::midpoint(top.fold(f64::MAX, f64::min), bottom.fold(0.0, f64::max));
                    Some((form(points), x, y))
                }
                _ => None,
            })
            .collect();
        for label in &scene.labels {
            let Some((_, kind)) = words.iter().find(|(word, _)| label.text.starts_with(word)) else {
                continue;
            };
            let distance = |(_, x, y): &(&str, f64, f64)| {
                let rect = &label.rect;
                (x - x.clamp(rect.left, rect.right)).hypot(y - y.clamp(rect.top, rect.bottom))
            };
            let nearest = marks.iter().map(distance).fold(f64::MAX, f64::min);
            let near: Vec<_> = marks.iter().filter(|mark| distance(mark) < nearest + 1.6).collect();
            assert!(near.iter().any(|(form, ..)| form == kind), "{label:?} stands by {near:?}");
        }
    }

    #[test]
    fn words_stand_by_their_own_marks() {
        let mut script = samples::Script::new();
        for tenure in 0..12u32 {
            let (from, attempt) = (20.0 + 60.0 * f64::from(tenure), u64::from(tenure) + 1);
            script.acquire(from, from + 0.5, "c1", attempt, attempt);
            script.write(from + 40.0, "c1", attempt, attempt, attempt, "ok");
            // The next acquire follows at once, always a little later.
            script.release(from + 59.5 - f64::from(tenure), "c1", attempt, true);
        }
        let recording = Recording::parse(script.text().as_bytes()).unwrap();
        let scene = scene(&recording, None);
        keep("words", &scene);
        assert!(texts(&scene).contains(&"released"), "{:?}", texts(&scene));
        assert_words_stand_by_their_marks(&scene);
    }

    #[test]
    fn no_history_breaks_a_picture() {
        for seed in 0..150 {
            let (text, verdict) = samples::chaos(seed);
            let recording = Recording::parse(text.as_bytes()).unwrap();
            let scene = scene(&recording, Some(&verdict));
            assert_tidy(&scene);
            assert_words_stand_by_their_marks(&scene);
            assert!(scene.marks() <= MARKS_MAX, "{} marks for seed {seed}", scene.marks());
            for plot in crate::plots::PLOTS {
                if let Some(scene) = (plot.scene)(&recording, Some(&verdict)) {
                    assert_tidy(&scene);
                }
            }
        }
    }
}
