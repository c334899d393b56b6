//! The default resource: a process of its own that keeps its rows and its record in SQLite and is reached over
//! TCP, one JSON object a line.

mod client;
pub mod server;
mod store;
mod wire;

use std::{net::Ipv4Addr, path::Path, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use fencepost_checker::registry::{Item, OptionSpec, Options};

use crate::{
    resource::{Resource, ResourceClient, ResourceSetup},
    server::ServerSpec,
};

/// The resource `service`.
#[derive(Clone, Copy, Debug)]
pub struct Service;

impl Resource for Service {
    fn item(&self) -> Item {
        Item {
            name: "service",
            summary: "a service over TCP that keeps its rows in SQLite",
            documentation: "Position, write id and highest token are columns of the key's own row, changed in the \
                write's own statement; a trigger keeps the record of accepted writes in commit order.",
            options: &[
                OptionSpec {
                    name: "storage",
                    summary: "where the fence's highest token lives: in the row, or in memory, forgotten at a restart",
                    default: "sqlite",
                    values: &["sqlite", "memory"],
                },
                OptionSpec {
                    name: "check",
                    summary: "in the statement of the access; in one before it; or turning away the next token, too",
                    default: "atomic",
                    values: &["atomic", "check-then-write", "too-strict"],
                },
            ],
        }
    }

    fn server(&self, setup: &ResourceSetup) -> Arc<dyn ServerSpec> {
        Arc::new(ServiceServer {
            fence: setup.fence.name.clone(),
            storage: setup.options.get("storage").to_owned(),
            check: setup.options.get("check").to_owned(),
        })
    }

    fn program(&self) -> Option<PathBuf> {
        std::env::current_exe().ok()
    }

    fn connect(&self, setup: &ResourceSetup, endpoint: &str) -> Arc<dyn ResourceClient> {
        Arc::new(client::Client::new(endpoint, is_two_phase(&setup.fence.name, &setup.options)))
    }
}

/// Is the token checked in a request of its own, before the write?
fn is_two_phase(fence: &str, options: &Options) -> bool {
    fence == "token-racy" || options.get("check") == "check-then-write"
}

struct ServiceServer {
    fence: String,
    storage: String,
    check: String,
}

#[async_trait]
impl ServerSpec for ServiceServer {
    fn name(&self) -> &str {
        "resource"
    }

    fn program(&self) -> &'static str {
        "fencepost"
    }

    fn package(&self) -> &'static str {
        "fencepost"
    }

    fn arguments(&self, port: u16, data: &Path) -> Vec<String> {
        let data = data.join("resource.sqlite").display().to_string();
        let port = port.to_string();
        let arguments = ["resource", "--port", &port, "--database", &data, "--fence", &self.fence];
        arguments
            .into_iter()
            .chain(["--storage", &self.storage, "--check", &self.check])
            .map(str::to_owned)
            .collect()
    }

    fn endpoint(&self, port: u16) -> String {
        format!("127.0.0.1:{port}")
    }

    async fn is_ready(&self, port: u16) -> bool {
        tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok()
    }
}
