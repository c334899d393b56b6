//! No lock at all: everybody is granted at once. It calibrates the measurements and proves that the checker
//! has teeth.

use std::sync::Arc;

use async_trait::async_trait;
use fencepost_checker::{
    contract::Contract,
    history::Released,
    registry::{Item, Options},
};
use fencepost_nemesis::clock::raw::RunClock;

use crate::{
    lock::{Call, Grant, Lock, LockClient, OpError, OpenError, Opening, Outcome, Renewal},
    server::ServerSpec,
};

pub(super) struct NoLock;

#[async_trait]
impl Lock for NoLock {
    fn item(&self) -> Item {
        Item {
            name: "none",
            summary: "grants everybody: calibration, and proof that the checker has teeth",
            documentation: "It claims to be a plain mutex and excludes nobody.",
            options: &[],
        }
    }

    fn contract(&self, _: &Options) -> Contract {
        Contract::default()
    }

    fn gates(&self, _: &Options) -> &'static [&'static str] {
        &[]
    }

    fn servers(&self, _: &Options) -> Vec<Arc<dyn ServerSpec>> {
        Vec::new()
    }

    async fn open(&self, _: &Options, opening: Opening) -> Result<Arc<dyn LockClient>, OpenError> {
        Ok(Arc::new(Client { clock: opening.clock }))
    }
}

struct Client {
    clock: RunClock,
}

#[async_trait]
impl LockClient for Client {
    async fn acquire(&self, call: &Call) -> Outcome<Grant> {
        let now = self.clock.now_ns();
        Outcome::Ok(Grant {
            token: None,
            validity_ms: None,
            ttl_ms: None,
            owner: call.process.clone(),
            granted_after: now,
            granted_by: now,
        })
    }

    async fn renew(&self, _: &Call) -> Outcome<Renewal> {
        Outcome::Fail(OpError {
            cause: fencepost_checker::history::Cause::Refused,
            text: "there is no lease to renew".into(),
            source: Some(fencepost_checker::history::Source::Library),
        })
    }

    async fn release(&self, _: &Call) -> Outcome<Released> {
        Outcome::Ok(Released::Yes)
    }

    async fn held(&self, _: &Call) -> Outcome<bool> {
        Outcome::Ok(true)
    }
}
