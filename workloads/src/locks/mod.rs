//! Which locks are there? One file each, one line here.

mod none;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redis")]
mod redlock;
mod sqlite;

use crate::lock::Lock;

/// All locks, by name.
pub const LOCKS: &[&dyn Lock] = &[
    &sqlite::Sqlite,
    #[cfg(feature = "redis")]
    &redis::Redis,
    #[cfg(feature = "redis")]
    &redlock::Redlock,
    &none::NoLock,
];
