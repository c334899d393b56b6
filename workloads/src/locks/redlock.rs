//! A lease lock on a majority of independent Redis servers, after the algorithm that Redis documents under the name
//! Redlock: the same key on each, granted by more than half of them within the lease.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use fencepost_checker::{
    contract::{Contract, LeaseClock, ReleaseCheck, Renews, Term, TokenSource},
    history::{Cause, Released, Source},
    registry::{Item, OptionSpec, Options},
};
use fencepost_nemesis::{clock::raw::RunClock, quantity};
use futures_util::future::join_all;
use rand::{RngExt as _, seq::SliceRandom as _};
use redis::Script;

use crate::{
    lock::{Call, Grant, Lock, LockClient, OpenError, Opening, Outcome, Renewal, error, poll, validity_ms},
    redis_connection::{COMPARE_AND_DELETE, COMPARE_AND_EXPIRE, Failed, RedisConnection, Request},
    resource::ResourceClient,
    server::{ServerSpec, redis::RedisServer},
};

pub(super) struct Redlock;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec { name: "nodes", summary: "independent servers", default: "5", values: &["3", "5"] },
    OptionSpec {
        name: "reach",
        summary: "how many of them each attempt asks: all, or a bare majority, another one each time",
        default: "all",
        values: &["all", "majority"],
    },
    OptionSpec {
        name: "ask",
        summary: "all at once, or one after the other",
        default: "parallel",
        values: &["parallel", "sequence"],
    },
    OptionSpec {
        name: "drift",
        summary: "subtracted from the validity for the clocks' difference; auto: 1 % of the ttl and 2 ms",
        default: "auto",
        values: &[],
    },
    OptionSpec {
        name: "validity",
        summary: "whether a grant that came too late is refused",
        default: "checked",
        values: &["checked", "unchecked"],
    },
    OptionSpec {
        name: "token",
        summary: "none, since its random value has no order; or a counter at the resource",
        default: "none",
        values: &["none", "resource"],
    },
    OptionSpec {
        name: "aof",
        summary: "append-only file of each server: none, fsync each second, fsync each write",
        default: "no",
        values: &["no", "everysec", "always"],
    },
];

fn nodes(options: &Options) -> usize {
    if options.get("nodes") == "3" { 3 } else { 5 }
}

#[async_trait]
impl Lock for Redlock {
    fn item(&self) -> Item {
        Item {
            name: "redlock",
            summary: "SET NX PX on a majority of independent Redis servers",
            documentation: "Excludes as long as no majority forgets and clocks run alike. A server that comes back \
                empty may let a second client reach a majority while the first still holds; if every attempt locks \
                all servers, as many must forget as make a majority.",
            options: OPTIONS,
        }
    }

    fn contract(&self, options: &Options) -> Contract {
        Contract {
            term: Term::Lease,
            granularity_ms: 1,
            renews: Renews::Never,
            release: ReleaseCheck::OwnerChecked,
            token: if options.get("token") == "none" { TokenSource::None } else { TokenSource::Apart },
            clock: LeaseClock::Server,
            ..Contract::default()
        }
    }

    fn gates(&self, options: &Options) -> &'static [&'static str] {
        if options.get("token") == "none" { &[] } else { &["acquire.between"] }
    }

    fn servers(&self, options: &Options) -> Vec<Arc<dyn ServerSpec>> {
        let server = |n| RedisServer { name: format!("redis-{n}"), aof: options.get("aof").to_owned() };
        (1..=nodes(options)).map(|n| Arc::new(server(n)) as Arc<dyn ServerSpec>).collect()
    }

    fn check(
        &self,
        options: &Options,
        ttl: Duration,
    ) -> Result<(), fencepost_checker::registry::ChoiceError> {
        drift(options, ttl).map(drop)
    }

    async fn open(&self, options: &Options, opening: Opening) -> Result<Arc<dyn LockClient>, OpenError> {
        let failed = |why: String| OpenError { lock: "redlock", why };
        let ttl = Duration::from_millis(opening.ttl_ms);
        let connect = |endpoint: &String| {
            let client = redis::Client::open(endpoint.as_str()).map_err(|error| failed(error.to_string()))?;
            Ok(RedisConnection::new(client, node_timeout(ttl)))
        };
        let nodes: Vec<_> = opening.endpoints.iter().map(connect).collect::<Result<_, OpenError>>()?;
        let majority = nodes.len() / 2 + 1;
        Ok(Arc::new(Client {
            reach: if options.get("reach") == "all" { nodes.len() } else { majority },
            nodes,
            majority,
            in_sequence: options.get("ask") == "sequence",
            drift: drift(options, ttl).map_err(|error| failed(error.to_string()))?,
            checks_validity: options.get("validity") == "checked",
            draws_token: options.get("token") == "resource",
            clock: opening.clock,
            resource: opening.resource,
            holds: Mutex::new(HashMap::new()),
        }))
    }
}

/// Short against the lease, so that one server that is down does not use it up.
fn node_timeout(ttl: Duration) -> Duration {
    (ttl / 10).clamp(Duration::from_millis(10), Duration::from_millis(100))
}

fn drift(options: &Options, ttl: Duration) -> Result<Duration, fencepost_checker::registry::ChoiceError> {
    options.parse("drift", "auto, or a length of time such as 5ms", |text| {
        if text == "auto" {
            return Some(ttl.mul_f64(0.01) + Duration::from_millis(2));
        }
        quantity::duration(text, Some(ttl)).ok()
    })
}

struct Client {
    nodes: Vec<RedisConnection>,
    majority: usize,
    reach: usize,
    in_sequence: bool,
    drift: Duration,
    checks_validity: bool,
    draws_token: bool,
    clock: RunClock,
    resource: Arc<dyn ResourceClient>,
    /// The value of each actor's present or last hold.
    holds: Mutex<HashMap<(String, String), String>>,
}

/// The answers of several servers to one question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Votes {
    yes: usize,
    no: usize,
    /// It may have acted.
    unknown: usize,
}

impl Votes {
    fn count(answers: impl IntoIterator<Item = Result<bool, Failed>>) -> Self {
        let mut votes = Self::default();
        for answer in answers {
            match answer {
                Ok(true) => votes.yes += 1,
                Ok(false) => votes.no += 1,
                Err(failed) if failed.may_have_acted => votes.unknown += 1,
                // One that cannot be reached does not vote.
                Err(_) => {}
            }
        }
        votes
    }
}

fn key(call: &Call) -> String {
    format!("lock:{}", call.lock)
}

impl Client {
    /// Asks these servers, at once or one after the other.
    async fn ask<'a, F>(&'a self, places: &[usize], question: impl Fn(&'a RedisConnection) -> F) -> Votes
    where
        F: Future<Output = Result<bool, Failed>>,
    {
        let questions = places.iter().filter_map(|place| self.nodes.get(*place)).map(question);
        if !self.in_sequence {
            return Votes::count(join_all(questions).await);
        }
        let mut answers = Vec::new();
        for question in questions {
            answers.push(question.await);
        }
        Votes::count(answers)
    }

    fn all(&self) -> Vec<usize> {
        (0..self.nodes.len()).collect()
    }

    /// The servers that an attempt asks.
    fn reached(&self) -> Vec<usize> {
        let mut places = self.all();
        if self.reach < places.len() {
            places.shuffle(&mut rand::rng());
            places.truncate(self.reach);
        }
        places
    }

    async fn delete(&self, call: &Call, owner: &str) -> Votes {
        self.ask(&self.all(), |node| script(node, COMPARE_AND_DELETE, key(call), owner.to_owned(), None))
            .await
    }

    fn owner(&self, call: &Call) -> Option<String> {
        let holder = (call.process.clone(), call.lock.clone());
        self.holds.lock().unwrap_or_else(PoisonError::into_inner).get(&holder).cloned()
    }

    async fn try_acquire(&self, call: &Call) -> Outcome<Grant> {
        let owner = format!("{:032x}", rand::rng().random::<u128>());
        let ttl_ms = call.ttl.as_millis() as u64;
        let granted_after = self.clock.now_ns();
        let votes = self.ask(&self.reached(), |node| set(node, key(call), owner.clone(), ttl_ms)).await;
        let granted_by = self.clock.now_ns();
        let validity = validity_ms(call.ttl, granted_after, granted_by) - self.drift.as_millis() as i64;
        if votes.yes < self.majority || (self.checks_validity && validity <= 0) {
            self.delete(call, &owner).await;
            return self.refused(votes);
        }
        let token = if self.draws_token {
            call.gate("acquire.between").await;
            match self.resource.next_token(&call.lock).await {
                Ok(token) => Some(token),
                Err(error) => return Outcome::Info(error),
            }
        } else {
            None
        };
        let holder = (call.process.clone(), call.lock.clone());
        self.holds.lock().unwrap_or_else(PoisonError::into_inner).insert(holder, owner.clone());
        let validity_ms = Some(validity);
        Outcome::Ok(Grant { token, validity_ms, ttl_ms: Some(ttl_ms), owner, granted_after, granted_by })
    }

    /// No majority, or too late.
    fn refused(&self, votes: Votes) -> Outcome<Grant> {
        let Votes { yes, no, unknown } = votes;
        let text = format!(
            "{yes} of {} servers granted it, {no} refused, {unknown} did not answer",
            self.nodes.len()
        );
        if yes + unknown >= self.majority {
            // It may have held a majority for a while.
            return Outcome::Info(error(Cause::Timeout, Source::Library, text));
        }
        let cause = if no > 0 { Cause::Busy } else { Cause::Unavailable };
        Outcome::Fail(error(cause, Source::Server, text))
    }
}

async fn set(node: &RedisConnection, key: String, owner: String, ttl_ms: u64) -> Result<bool, Failed> {
    let mut command = redis::cmd("SET");
    command.arg(key).arg(owner).arg("NX").arg("PX").arg(ttl_ms);
    let set: Option<String> = node.ask(Request::Command(&command)).await?;
    Ok(set.is_some())
}

async fn script(
    node: &RedisConnection,
    code: &str,
    key: String,
    owner: String,
    ttl_ms: Option<u64>,
) -> Result<bool, Failed> {
    let script = Script::new(code);
    let mut invocation = script.prepare_invoke();
    invocation.key(key).arg(owner);
    if let Some(ttl_ms) = ttl_ms {
        invocation.arg(ttl_ms);
    }
    let changed: u64 = node.ask(Request::Script(&invocation)).await?;
    Ok(changed > 0)
}

async fn is_mine(node: &RedisConnection, key: String, owner: String) -> Result<bool, Failed> {
    let mut command = redis::cmd("GET");
    command.arg(key);
    let present: Option<String> = node.ask(Request::Command(&command)).await?;
    Ok(present == Some(owner))
}

#[async_trait]
impl LockClient for Client {
    async fn acquire(&self, call: &Call) -> Outcome<Grant> {
        poll(call.wait, || self.try_acquire(call)).await
    }

    async fn renew(&self, call: &Call) -> Outcome<Renewal> {
        let Some(owner) = self.owner(call) else {
            return Outcome::Fail(error(Cause::NotHeld, Source::Library, "never acquired"));
        };
        let ttl_ms = call.ttl.as_millis() as u64;
        let granted_after = self.clock.now_ns();
        let votes = self
            .ask(&self.all(), |node| script(node, COMPARE_AND_EXPIRE, key(call), owner.clone(), Some(ttl_ms)))
            .await;
        let granted_by = self.clock.now_ns();
        let validity = validity_ms(call.ttl, granted_after, granted_by) - self.drift.as_millis() as i64;
        if votes.yes >= self.majority && (validity > 0 || !self.checks_validity) {
            return Outcome::Ok(Renewal { ttl_ms, granted_after, granted_by });
        }
        if votes.yes + votes.unknown >= self.majority {
            return Outcome::Info(error(
                Cause::Timeout,
                Source::Library,
                "a majority did not answer in time",
            ));
        }
        // A minority's word is no proof that the lock was lost: the rest may be down.
        let source = if votes.no >= self.majority { Source::Server } else { Source::Library };
        Outcome::Fail(error(Cause::NotHeld, source, "no majority holds it for this client"))
    }

    async fn release(&self, call: &Call) -> Outcome<Released> {
        let Some(owner) = self.owner(call) else {
            return Outcome::Fail(error(Cause::NotHeld, Source::Library, "never acquired"));
        };
        let votes = self.delete(call, &owner).await;
        Outcome::Ok(match votes {
            Votes { yes, .. } if yes >= self.majority => Released::Yes,
            Votes { no, .. } if no >= self.majority => Released::No,
            _ => Released::Unknown,
        })
    }

    async fn held(&self, call: &Call) -> Outcome<bool> {
        let Some(owner) = self.owner(call) else { return Outcome::Ok(false) };
        let votes = self.ask(&self.all(), |node| is_mine(node, key(call), owner.clone())).await;
        if votes.yes >= self.majority {
            return Outcome::Ok(true);
        }
        if votes.yes + votes.unknown >= self.majority {
            return Outcome::Info(error(
                Cause::Timeout,
                Source::Library,
                "a majority did not answer in time",
            ));
        }
        Outcome::Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_cannot_be_reached_does_not_vote() {
        let failed =
            |may_have_acted| Failed { may_have_acted, error: error(Cause::Timeout, Source::Library, "") };
        let votes = Votes::count([Ok(true), Ok(false), Err(failed(true)), Err(failed(false))]);
        assert_eq!(votes, Votes { yes: 1, no: 1, unknown: 1 });
    }
}
