//! The service's process: one thread a connection, one store behind a lock.

use std::{
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use super::{
    store::{Rules, Store},
    wire::{Reply, Request},
};

/// What the service was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRules {
    /// The fence's name.
    pub fence: String,
    /// `sqlite` or `memory`.
    pub storage: String,
    /// `atomic`, `check-then-write` or `too-strict`.
    pub check: String,
}

/// Why the service cannot serve, a fragment that fits after "error: ".
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The database.
    #[error("cannot open the resource's database: {0}")]
    Database(#[from] rusqlite::Error),
    /// The port.
    #[error("cannot listen on port {port}: {source}")]
    Listen {
        /// The port.
        port: u16,
        /// The reason.
        source: std::io::Error,
    },
}

/// Serves until killed.
///
/// # Errors
/// If the database cannot be opened or the port is taken.
pub fn serve(port: u16, database: &Path, rules: &ServiceRules) -> Result<(), ServeError> {
    let rules = Rules {
        fence: rules.fence.clone(),
        in_memory: rules.storage == "memory",
        too_strict: rules.check == "too-strict",
    };
    let store = Arc::new(Mutex::new(Store::open(database, rules)?));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|source| ServeError::Listen { port, source })?;
    for stream in listener.incoming().flatten() {
        let store = Arc::clone(&store);
        thread::spawn(move || {
            // A client that goes away is no error of the service.
            let _ = talk(&stream, &store);
        });
    }
    Ok(())
}

fn talk(stream: &TcpStream, store: &Mutex<Store>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream;
    for line in BufReader::new(stream).lines() {
        let reply = match serde_json::from_str::<Request>(&line?) {
            Ok(request) => store.lock().unwrap_or_else(PoisonError::into_inner).answer(request),
            Err(error) => Reply::Error { text: error.to_string() },
        };
        let mut bytes = serde_json::to_vec(&reply)?;
        bytes.push(b'\n');
        writer.write_all(&bytes)?;
    }
    Ok(())
}
