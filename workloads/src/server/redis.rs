//! A Redis server, with or without an append-only file.

use std::{path::Path, time::Duration};

use async_trait::async_trait;

use super::ServerSpec;

/// One `redis-server`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisServer {
    /// Its name in the run.
    pub name: String,
    /// The append-only file: `no`, `everysec` or `always`.
    pub aof: String,
}

#[async_trait]
impl ServerSpec for RedisServer {
    fn name(&self) -> &str {
        &self.name
    }

    fn program(&self) -> &'static str {
        "redis-server"
    }

    fn package(&self) -> &'static str {
        "redis-server"
    }

    fn arguments(&self, port: u16, data: &Path) -> Vec<String> {
        let data = data.display().to_string();
        let mut arguments: Vec<String> =
            ["--bind", "127.0.0.1", "--protected-mode", "no", "--daemonize", "no"]
                .into_iter()
                .chain(["--save", "", "--dir", &data])
                .map(str::to_owned)
                .collect();
        arguments.extend(["--port".to_owned(), port.to_string()]);
        if self.aof == "no" {
            arguments.extend(["--appendonly", "no"].map(str::to_owned));
        } else {
            arguments.extend(["--appendonly", "yes", "--appendfsync", &self.aof].map(str::to_owned));
        }
        arguments
    }

    fn endpoint(&self, port: u16) -> String {
        format!("redis://127.0.0.1:{port}")
    }

    async fn is_ready(&self, port: u16) -> bool {
        let ping = async {
            let client = redis::Client::open(self.endpoint(port)).ok()?;
            let mut connection = client.get_multiplexed_async_connection().await.ok()?;
            // While it loads its file it answers with an error.
            redis::cmd("PING").query_async::<String>(&mut connection).await.ok()
        };
        matches!(tokio::time::timeout(Duration::from_millis(500), ping).await, Ok(Some(_)))
    }
}
