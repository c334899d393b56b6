//! Which colour means what? The same everywhere, in pictures, pages and both themes.
//!
//! The hues are those of Okabe and Ito ("Color Universal Design", 2008), told apart with every common form
//! of colour blindness. Neutral tones have a dark twin; the hues stay.

/// What a colour stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Color {
    /// The paper.
    Paper,
    /// Text and outlines.
    Ink,
    /// Text of lesser weight, and what is ordinary: a busy lock.
    Muted,
    /// Axes and lane borders.
    Grid,
    /// A lane's ground.
    Lane,
    /// A lock held.
    Hold,
    /// Text on a lock held, in both themes.
    OnHold,
    /// A lock believed to be held.
    Belief,
    /// Done: accepted, granted, released, read.
    Done,
    /// Turned away.
    Rejected,
    /// Of unknown outcome.
    Unknown,
    /// A fault in force.
    Fault,
    /// A finding.
    Finding,
}

/// Colours that change between the light and the dark theme: what, light, dark.
pub(crate) const NEUTRALS: &[(Color, &str, &str)] = &[
    (Color::Paper, "#FFFFFF", "#16191D"),
    (Color::Ink, "#1B1F24", "#E6E8EB"),
    (Color::Muted, "#646B74", "#9AA2AC"),
    (Color::Grid, "#CBD0D6", "#3A4048"),
    (Color::Lane, "#F4F5F7", "#1F2329"),
];

impl Color {
    /// Red, green, blue, in the light theme.
    pub(crate) fn rgb(self) -> (u8, u8, u8) {
        match self {
            Self::Paper => (0xFF, 0xFF, 0xFF),
            Self::Ink => (0x1B, 0x1F, 0x24),
            Self::Muted => (0x64, 0x6B, 0x74),
            Self::Grid => (0xCB, 0xD0, 0xD6),
            Self::Lane => (0xF4, 0xF5, 0xF7),
            Self::Hold => (0x00, 0x72, 0xB2),
            Self::OnHold => (0xFE, 0xFE, 0xFE),
            Self::Belief => (0x56, 0xB4, 0xE9),
            Self::Done => (0x00, 0x9E, 0x73),
            Self::Rejected => (0xE6, 0x9F, 0x00),
            Self::Unknown => (0xF0, 0xE4, 0x42),
            Self::Fault => (0xCC, 0x79, 0xA7),
            Self::Finding => (0xD5, 0x5E, 0x00),
        }
    }

    /// As it stands in an SVG.
    #[cfg(test)]
    pub(crate) fn hex(self) -> String {
        let (r, g, b) = self.rgb();
        format!("#{r:02X}{g:02X}{b:02X}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_neutral_tones_are_those_of_the_light_theme() {
        for (color, light, dark) in NEUTRALS {
            assert_eq!(&color.hex(), light);
            assert_ne!(light, dark);
        }
    }
}
