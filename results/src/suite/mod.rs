//! Many tests with expectations: a suite file goes in, cells come out; what the cells came to goes into the
//! suite's own directory.
//!
//! Running the cells is the command's business: this crate knows neither locks nor workloads.

pub mod cell;
pub mod file;
mod matrix;
mod outputs;
pub mod pattern;
pub mod result;
mod sweep;
pub mod threshold;

pub use matrix::text as matrix_text;
pub use outputs::write as write_outputs;
