//! What can be done to processes, and when: faults, their schedules, and the sandbox that leaves nothing
//! behind. The only crate of the project with `unsafe` code; every block says why it is sound.

pub mod capability;
pub mod clock;
pub mod fault;
pub mod faults;
pub mod process;
pub mod quantity;
pub mod sandbox;
pub mod schedule;
pub mod testbed;

pub use faults::NEMESES;
