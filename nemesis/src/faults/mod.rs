//! Which faults are there? One file each, one line here.

mod crash_resource;
mod kill_holder;
mod kill_server;
mod none;
mod pause;
mod pause_holder;
mod pause_server;

use crate::fault::Fault;

/// All faults, by name.
pub const NEMESES: &[&dyn Fault] = &[
    &none::NoFault,
    &pause_holder::PauseHolder,
    &pause::Pause,
    &pause_server::PauseServer,
    &kill_holder::KillHolder,
    &kill_server::KillServer,
    &crash_resource::CrashResource,
];
