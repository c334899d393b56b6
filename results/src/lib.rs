//! Turns a finished run into what people look at: a run directory goes in, files come out.
//!
//! Nothing here can change a verdict: a picture that cannot be drawn is a [`render::Warning`], and the
//! judgement of a run ([`expectation::judge`]) looks at the verdict alone.
#![forbid(unsafe_code)]

mod draw;
pub mod expectation;
mod finished;
mod outputs;
mod plots;
mod recording;
pub mod render;
pub mod store;
pub mod suite;
mod timeline;
pub mod words;

#[cfg(test)]
mod samples;
