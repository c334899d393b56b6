//! How does anything get drawn? A picture is laid out as a [`scene::Scene`], whose boxes can be looked at
//! by tests, and only then painted.

pub(crate) mod axis;
pub(crate) mod font;
pub(crate) mod legend;
pub(crate) mod paint;
pub(crate) mod palette;
pub(crate) mod scene;
pub(crate) mod signs;
