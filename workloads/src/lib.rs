//! Real workloads on real locks: lock backends, protected resources, the worker process of a client, and the
//! runner that turns a plan into a history.

#![forbid(unsafe_code)]

pub mod fence;
pub mod lock;
pub mod locks;
pub mod protocol;
#[cfg(feature = "redis")]
mod redis_connection;
pub mod resource;
pub mod resources;
pub mod runner;
pub mod scenarios;
pub mod server;
pub mod settings;
pub mod worker;
pub mod workload;

mod counter;
mod daily_report;
mod mutex;

pub use fence::FENCES;
pub use locks::LOCKS;
pub use resources::RESOURCES;
pub use workload::WORKLOADS;
