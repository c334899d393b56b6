//! Proves from the recorded history of a distributed lock what went wrong: double ownership, stale writes,
//! lost updates.
#![forbid(unsafe_code)]

pub mod anomalies;
mod availability;
mod case;
pub mod check;
mod clash;
pub mod contract;
pub mod history;
mod judge;
mod ledger;
mod live;
mod metrics;
pub mod models;
mod names;
mod owned;
pub mod plan;
pub mod readers;
mod reentry;
pub mod registry;
pub mod search;
mod sweep;
mod tenure;
pub mod verdict;
