//! The built binary, as a user drives it: real servers, real processes, real faults.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod architecture;
mod bad_input;
mod clean_runs;
mod demo;
mod leftovers;
mod planted_bugs;
mod registries;
mod replay;
mod support;
