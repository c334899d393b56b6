//! The processes of a run: lock servers, resource, clients, as faults see them.

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use fencepost_nemesis::{
    clock::raw::RunClock,
    process::Group,
    sandbox::Sandbox,
    testbed::{Target, Testbed},
};
use tokio::sync::watch;

use crate::{
    resource::ResourceClient,
    server::{Server, ServerError, free_port},
    settings::Setup,
};

/// Where a run's files go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Temporary ones.
    pub scratch: PathBuf,
    /// Logs, which are kept.
    pub logs: PathBuf,
}

/// All processes of a run.
#[derive(Debug)]
pub struct Bed {
    /// Who cleans up.
    pub sandbox: Arc<Sandbox>,
    /// Where files go.
    pub places: Places,
    /// The run's clock.
    pub clock: RunClock,
    servers: Vec<Server>,
    resource: Server,
    clients: Mutex<BTreeMap<String, ClientSlot>>,
}

/// A client's present process.
#[derive(Debug)]
struct ClientSlot {
    label: String,
    group: Group,
    /// Becomes true when it is gone and all its lines are read.
    gone: watch::Receiver<bool>,
}

impl Bed {
    /// Starts servers and resource.
    ///
    /// # Errors
    /// [`ServerError`] if one is missing or does not start.
    pub async fn up(
        setup: &Setup,
        sandbox: Arc<Sandbox>,
        places: &Places,
        clock: RunClock,
    ) -> Result<Self, ServerError> {
        let port = |name: &str| {
            free_port().map_err(|source| ServerError::Io {
                name: name.to_owned(),
                what: "find a free port",
                source,
            })
        };
        let mut servers = Vec::new();
        for spec in setup.lock.servers(&setup.lock_options) {
            let port = port(spec.name())?;
            servers.push(Server::start(spec, None, port, Arc::clone(&sandbox), places).await?);
        }
        let spec = setup.resource.server(&setup.resource_setup);
        let (port, program) = (port("resource")?, setup.resource.program());
        let resource = Server::start(spec, program, port, Arc::clone(&sandbox), places).await?;
        let (places, clients) = (places.clone(), Mutex::new(BTreeMap::new()));
        Ok(Self { sandbox, places, clock, servers, resource, clients })
    }

    /// The lock servers' endpoints.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        self.servers.iter().map(Server::endpoint).collect()
    }

    /// The resource's endpoint.
    #[must_use]
    pub fn resource_endpoint(&self) -> String {
        self.resource.endpoint()
    }

    /// The runner's own connection to the resource.
    #[must_use]
    pub fn connect_resource(&self, setup: &Setup) -> Arc<dyn ResourceClient> {
        setup.resource.connect(&setup.resource_setup, &self.resource_endpoint())
    }

    /// Versions of the lock servers, by name.
    #[must_use]
    pub fn versions(&self) -> BTreeMap<String, String> {
        self.servers.iter().map(|server| (server.name().to_owned(), server.version())).collect()
    }

    /// A server that ended by itself.
    pub async fn unexpected_end(&self) -> Option<ServerError> {
        for server in self.servers.iter().chain([&self.resource]) {
            if let Some(error) = server.unexpected_end().await {
                return Some(error);
            }
        }
        None
    }

    /// Ends servers and resource.
    pub async fn down(&self) {
        for server in self.servers.iter().chain([&self.resource]) {
            // One that is gone already needs no ending.
            let _ = server.kill().await;
        }
    }

    /// A client's process is up.
    pub fn client_up(&self, place: &str, label: String, group: Group, gone: watch::Receiver<bool>) {
        self.sandbox.adopt(group);
        self.clients().insert(place.to_owned(), ClientSlot { label, group, gone });
    }

    /// A client's process is gone.
    pub fn client_down(&self, place: &str) {
        if let Some(slot) = self.clients().remove(place) {
            self.sandbox.release(slot.group);
        }
    }

    fn clients(&self) -> MutexGuard<'_, BTreeMap<String, ClientSlot>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client(&self, place: &str) -> io::Result<Group> {
        let clients = self.clients();
        clients
            .get(place)
            .map(|slot| slot.group)
            .ok_or_else(|| io::Error::other(format!("{place} is not up")))
    }

    fn server(&self, target: &Target) -> io::Result<&Server> {
        match target {
            Target::Resource => Ok(&self.resource),
            other => self
                .servers
                .iter()
                .find(|server| matches!(other, Target::Server(name) if name == server.name()))
                .ok_or_else(|| io::Error::other(format!("there is no {other}"))),
        }
    }

    async fn kill_client(&self, place: &str) -> io::Result<()> {
        let mut gone = {
            let clients = self.clients();
            let slot = clients.get(place).ok_or_else(|| io::Error::other(format!("{place} is not up")))?;
            slot.group.kill()?;
            slot.gone.clone()
        };
        // The sender goes only after it said so.
        let _ = gone.wait_for(|gone| *gone).await;
        Ok(())
    }
}

#[async_trait]
impl Testbed for Bed {
    fn clients(&self) -> Vec<Target> {
        self.clients().keys().cloned().map(Target::Client).collect()
    }

    fn servers(&self) -> Vec<Target> {
        self.servers.iter().map(|server| Target::Server(server.name().to_owned())).collect()
    }

    fn label(&self, target: &Target) -> String {
        match target {
            Target::Client(place) => {
                self.clients().get(place).map_or_else(|| place.clone(), |slot| slot.label.clone())
            }
            other => other.to_string(),
        }
    }

    fn stop(&self, target: &Target) -> io::Result<()> {
        match target {
            Target::Client(place) => self.client(place)?.stop(),
            other => self.server(other)?.stop(),
        }
    }

    fn resume(&self, target: &Target) -> io::Result<()> {
        match target {
            Target::Client(place) => self.client(place)?.resume(),
            other => self.server(other)?.resume(),
        }
    }

    async fn kill(&self, target: &Target) -> io::Result<()> {
        match target {
            Target::Client(place) => self.kill_client(place).await,
            other => self.server(other)?.kill().await,
        }
    }

    async fn restart(&self, target: &Target) -> io::Result<()> {
        match target {
            Target::Client(_) => Ok(()),
            other => self.server(other)?.launch().await.map_err(io::Error::other),
        }
    }
}
