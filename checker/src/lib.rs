//! Proves from the recorded history of a distributed lock what went wrong: double ownership, stale writes,
//! lost updates.
#![forbid(unsafe_code)]

pub mod anomalies;
pub mod check;
pub mod contract;
pub mod history;
mod owned;
pub mod plan;
pub mod readers;
pub mod registry;
pub mod verdict;
