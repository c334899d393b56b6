//! A lease lock on one Redis server, in the form that most people write, and in the broken forms that many
//! people write.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use fencepost_checker::{
    contract::{Contract, LeaseClock, ReleaseCheck, Renews, Term, TokenSource},
    history::{Cause, Released, Source},
    registry::{ChoiceError, Item, OptionSpec, Options},
};
use fencepost_nemesis::clock::raw::RunClock;
use rand::Rng as _;
use redis::{FromRedisValue, Script};

use crate::{
    lock::{Call, Grant, Lock, LockClient, OpenError, Opening, Outcome, Renewal, error, poll, validity_ms},
    redis_connection::{COMPARE_AND_DELETE, COMPARE_AND_EXPIRE, Failed, RedisConnection, Request},
    resource::ResourceClient,
    server::{ServerSpec, redis::RedisServer},
    worker::Notices,
};

/// How long a request may take; a request that takes longer has an unknown outcome.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(500);

pub(super) struct Redis;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "token",
        summary: "where the fencing token comes from: INCR in the script that sets the key, after it, before it; a \
            counter at the resource; none",
        default: "script",
        values: &["script", "after", "before", "resource", "none"],
    },
    OptionSpec {
        name: "release",
        summary: "compare-and-delete in a script; blind DEL; GET, compare, then DEL",
        default: "lua",
        values: &["lua", "del", "get-del"],
    },
    OptionSpec {
        name: "acquire",
        summary: "SET NX PX; GET, then SET; SETNX, then PEXPIRE",
        default: "nx",
        values: &["nx", "get-set", "setnx-expire"],
    },
    OptionSpec {
        name: "renew",
        summary: "renewal in the background each third of the ttl; retake: it takes the lock again if it is gone, \
            and says nothing",
        default: "off",
        values: &["off", "on", "retake"],
    },
    OptionSpec {
        name: "held",
        summary: "who answers 'is it still mine?': the server, or the client's own memory",
        default: "server",
        values: &["server", "local"],
    },
    OptionSpec {
        name: "promise",
        summary: "what the contract claims of the release, whatever it does",
        default: "as-is",
        values: &["as-is", "owner-checked", "idempotent", "blind"],
    },
    OptionSpec {
        name: "aof",
        summary: "append-only file: none, fsync each second, fsync each write",
        default: "no",
        values: &["no", "everysec", "always"],
    },
    OptionSpec {
        name: "owner",
        summary: "the key's value: a random number, or the token itself",
        default: "uuid",
        values: &["uuid", "token"],
    },
];

#[async_trait]
impl Lock for Redis {
    fn item(&self) -> Item {
        Item {
            name: "redis",
            summary: "SET NX PX on one Redis server",
            documentation: "The lease is a key with a time to live, by the server's clock. Without persistence a \
                restart forgets every lock and the token counter; its options are the common mistakes.",
            options: OPTIONS,
        }
    }

    fn contract(&self, options: &Options) -> Contract {
        let release = match (options.get("promise"), options.get("release")) {
            ("owner-checked", _) | ("as-is", "lua" | "get-del") => ReleaseCheck::OwnerChecked,
            ("idempotent", _) => ReleaseCheck::Idempotent,
            _ => ReleaseCheck::Blind,
        };
        Contract {
            term: Term::Lease,
            granularity_ms: 1,
            renews: if options.get("renew") == "off" { Renews::Never } else { Renews::Recorded },
            release,
            token: match options.get("token") {
                "none" => TokenSource::None,
                "script" => TokenSource::Atomic,
                _ => TokenSource::Apart,
            },
            clock: LeaseClock::Server,
            ..Contract::default()
        }
    }

    fn gates(&self, options: &Options) -> &'static [&'static str] {
        let between = options.get("acquire") != "nx" || !matches!(options.get("token"), "script" | "none");
        match (between, options.get("release") == "get-del") {
            (true, true) => &["acquire.between", "release.between", "renew.sent"],
            (true, false) => &["acquire.between", "renew.sent"],
            (false, true) => &["release.between", "renew.sent"],
            (false, false) => &["renew.sent"],
        }
    }

    fn servers(&self, options: &Options) -> Vec<Arc<dyn ServerSpec>> {
        vec![Arc::new(RedisServer { name: "redis".to_owned(), aof: options.get("aof").to_owned() })]
    }

    fn check(&self, options: &Options, _: Duration) -> Result<(), ChoiceError> {
        if options.get("owner") == "token" && options.get("token") != "before" {
            return Err(ChoiceError::Value {
                kind: "lock",
                item: "redis",
                option: "owner".to_owned(),
                value: "token".to_owned(),
                nearest: None,
                expected: "it needs the token before the key is set: add token=before".to_owned(),
            });
        }
        Ok(())
    }

    async fn open(&self, options: &Options, opening: Opening) -> Result<Arc<dyn LockClient>, OpenError> {
        let failed = |why: String| OpenError { lock: "redis", why };
        let endpoint = opening.endpoints.first().ok_or_else(|| failed("no endpoint given".to_owned()))?;
        let client = redis::Client::open(endpoint.as_str()).map_err(|error| failed(error.to_string()))?;
        let server = RedisConnection::new(client, RESPONSE_TIMEOUT);
        // The connection is opened at the first request: a server that is down at this moment is a fault like any
        // other.
        Ok(Arc::new(Client {
            inner: Arc::new(Inner {
                server,
                form: Form::of(options),
                clock: opening.clock,
                notices: opening.notices,
                resource: opening.resource,
            }),
            holds: Mutex::new(HashMap::new()),
        }))
    }
}

/// The options, as types.
struct Form {
    token: Token,
    release: ReleaseForm,
    acquire: AcquireForm,
    renew: Option<OnGone>,
    held_local: bool,
    owner_is_token: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Token {
    Script,
    After,
    Before,
    Resource,
    None,
}

#[derive(Clone, Copy, PartialEq)]
enum ReleaseForm {
    CompareAndDelete,
    Delete,
    GetThenDelete,
}

#[derive(Clone, Copy, PartialEq)]
enum AcquireForm {
    SetNx,
    GetThenSet,
    SetNxThenExpire,
}

/// What the renewal does when the lock is gone.
#[derive(Clone, Copy, PartialEq)]
enum OnGone {
    Tell,
    Retake,
}

impl Form {
    fn of(options: &Options) -> Self {
        Self {
            token: match options.get("token") {
                "script" => Token::Script,
                "after" => Token::After,
                "before" => Token::Before,
                "resource" => Token::Resource,
                _ => Token::None,
            },
            release: match options.get("release") {
                "lua" => ReleaseForm::CompareAndDelete,
                "del" => ReleaseForm::Delete,
                _ => ReleaseForm::GetThenDelete,
            },
            acquire: match options.get("acquire") {
                "nx" => AcquireForm::SetNx,
                "get-set" => AcquireForm::GetThenSet,
                _ => AcquireForm::SetNxThenExpire,
            },
            renew: match options.get("renew") {
                "off" => None,
                "on" => Some(OnGone::Tell),
                _ => Some(OnGone::Retake),
            },
            held_local: options.get("held") == "local",
            owner_is_token: options.get("owner") == "token",
        }
    }
}

/// Sets the key if it is free, and draws the token in the same step.
const SET_NX_AND_DRAW: &str = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then \
     return redis.call('INCR', KEYS[2]) else return 0 end";
/// Sets the key, free or not, and draws the token.
const SET_AND_DRAW: &str =
    "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return redis.call('INCR', KEYS[2])";
/// Sets the key without a term if it is free, and draws the token.
const SETNX_AND_DRAW: &str = "if redis.call('SETNX', KEYS[1], ARGV[1]) == 1 then \
     return redis.call('INCR', KEYS[2]) else return 0 end";
fn lock_key(call: &Call) -> String {
    format!("lock:{}", call.lock)
}

fn token_key(call: &Call) -> String {
    format!("token:{}", call.lock)
}

struct Inner {
    server: RedisConnection,
    form: Form,
    clock: RunClock,
    notices: Arc<Notices>,
    resource: Arc<dyn ResourceClient>,
}

/// The step that took the key: between which stamps, and its token if it drew one.
struct Taken {
    granted_after: u64,
    granted_by: u64,
    token: Option<u64>,
}

impl Inner {
    async fn command<T: FromRedisValue>(&self, command: &redis::Cmd) -> Result<T, Failed> {
        self.server.ask(Request::Command(command)).await
    }

    async fn script<T: FromRedisValue>(&self, code: &str, call: &Call, args: &[&str]) -> Result<T, Failed> {
        let script = Script::new(code);
        let mut invocation = script.prepare_invoke();
        invocation.key(lock_key(call)).key(token_key(call));
        for arg in args {
            invocation.arg(*arg);
        }
        self.server.ask(Request::Script(&invocation)).await
    }

    async fn draw_token(&self, call: &Call) -> Result<u64, Failed> {
        self.command(redis::cmd("INCR").arg(token_key(call))).await
    }

    async fn try_acquire(&self, call: &Call) -> Outcome<(Grant, String)> {
        match self.acquire_once(call).await {
            Ok(Some((grant, owner))) => Outcome::Ok((grant, owner)),
            Ok(None) => Outcome::busy(),
            Err(failed) => failed.into(),
        }
    }

    async fn acquire_once(&self, call: &Call) -> Result<Option<(Grant, String)>, Failed> {
        let mut token = None;
        if self.form.token == Token::Before {
            token = Some(self.draw_token(call).await?);
            call.gate("acquire.between").await;
        }
        let owner = match token {
            Some(token) if self.form.owner_is_token => token.to_string(),
            _ => format!(
                "{:032x}",
                u128::from(rand::rng().next_u64()) << 64 | u128::from(rand::rng().next_u64())
            ),
        };
        let Some(taken) = self.take(call, &owner).await? else { return Ok(None) };
        if validity_ms(call.ttl, taken.granted_after, self.clock.now_ns()) <= 0 {
            // By the client's count from before the request it is over; the server may have begun to count much later,
            // and would keep everybody waiting.
            let _: Result<u64, _> = self.script(COMPARE_AND_DELETE, call, &[&owner]).await;
            return Err(Failed::granted_too_late());
        }
        token = token.or(taken.token);
        if matches!(self.form.token, Token::After | Token::Resource) {
            call.gate("acquire.between").await;
            token = Some(self.late_token(call).await?);
        }
        let grant = Grant {
            token,
            validity_ms: Some(validity_ms(call.ttl, taken.granted_after, self.clock.now_ns())),
            ttl_ms: Some(call.ttl.as_millis() as u64),
            owner: owner.clone(),
            granted_after: taken.granted_after,
            granted_by: taken.granted_by,
        };
        Ok(Some((grant, owner)))
    }

    /// A token drawn when the key is already set: if that fails, nobody knows whether the lock is held.
    async fn late_token(&self, call: &Call) -> Result<u64, Failed> {
        let drawn = if self.form.token == Token::Resource {
            self.resource.next_token(&call.lock).await.map_err(|error| Failed { may_have_acted: true, error })
        } else {
            self.draw_token(call).await
        };
        drawn.map_err(|failed| Failed { may_have_acted: true, ..failed })
    }

    async fn take(&self, call: &Call, owner: &str) -> Result<Option<Taken>, Failed> {
        let key = lock_key(call);
        if self.form.acquire == AcquireForm::GetThenSet {
            let present: Option<String> = self.command(redis::cmd("GET").arg(&key)).await?;
            if present.is_some() {
                return Ok(None);
            }
            call.gate("acquire.between").await;
        }
        let granted_after = self.clock.now_ns();
        let Some(token) = self.set(call, owner).await? else { return Ok(None) };
        let set = Taken { granted_after, granted_by: self.clock.now_ns(), token };
        if self.form.acquire != AcquireForm::SetNxThenExpire {
            return Ok(Some(set));
        }
        call.gate("acquire.between").await;
        // The term counts from the second command.
        let granted_after = self.clock.now_ns();
        let ttl_ms = call.ttl.as_millis() as u64;
        let expire: Result<u64, _> = self.command(redis::cmd("PEXPIRE").arg(&key).arg(ttl_ms)).await;
        expire.map_err(|failed| Failed { may_have_acted: true, ..failed })?;
        Ok(Some(Taken { granted_after, granted_by: self.clock.now_ns(), ..set }))
    }

    /// The command that sets the key; `Some(token)` if it did.
    async fn set(&self, call: &Call, owner: &str) -> Result<Option<Option<u64>>, Failed> {
        let ttl_ms = call.ttl.as_millis().to_string();
        if self.form.token == Token::Script {
            let code = match self.form.acquire {
                AcquireForm::SetNx => SET_NX_AND_DRAW,
                AcquireForm::GetThenSet => SET_AND_DRAW,
                AcquireForm::SetNxThenExpire => SETNX_AND_DRAW,
            };
            let token: u64 = self.script(code, call, &[owner, &ttl_ms]).await?;
            return Ok((token > 0).then_some(Some(token)));
        }
        let mut command = redis::cmd("SET");
        command.arg(lock_key(call)).arg(owner);
        match self.form.acquire {
            AcquireForm::SetNx => command.arg("NX").arg("PX").arg(&ttl_ms),
            AcquireForm::GetThenSet => command.arg("PX").arg(&ttl_ms),
            AcquireForm::SetNxThenExpire => command.arg("NX"),
        };
        let set: Option<String> = self.command(&command).await?;
        Ok(set.map(|_| None))
    }

    /// Prolongs the lease; `None`: the server says that it is not ours.
    async fn renew(&self, call: &Call, owner: &str) -> Result<Option<Renewal>, Failed> {
        let ttl_ms = call.ttl.as_millis() as u64;
        let granted_after = self.clock.now_ns();
        let renewed: u64 = self.script(COMPARE_AND_EXPIRE, call, &[owner, &ttl_ms.to_string()]).await?;
        let renewal = |granted_after| Renewal { ttl_ms, granted_after, granted_by: self.clock.now_ns() };
        if renewed == 1 {
            return Ok(Some(renewal(granted_after)));
        }
        if self.form.renew == Some(OnGone::Retake) {
            let granted_after = self.clock.now_ns();
            let mut set = redis::cmd("SET");
            set.arg(lock_key(call)).arg(owner).arg("NX").arg("PX").arg(ttl_ms);
            let set: Option<String> = self.command(&set).await?;
            return Ok(set.map(|_| renewal(granted_after)));
        }
        Ok(None)
    }

    /// Renews each third of the ttl until told to stop or the lock is gone.
    async fn keep_alive(
        self: Arc<Self>,
        call: Call,
        hold: Arc<Hold>,
        mut stop: tokio::sync::watch::Receiver<bool>,
    ) {
        let mut lease_end = self.clock.now_ns() + call.ttl.as_nanos() as u64;
        loop {
            tokio::select! {
                _ = stop.wait_for(|stopped| *stopped) => return,
                () = tokio::time::sleep(call.ttl / 3) => {}
            }
            let start = self.clock.now_ns();
            match self.renew(&call, &hold.owner).await {
                Ok(Some(renewal)) => {
                    lease_end = renewal.granted_after + call.ttl.as_nanos() as u64;
                    self.notices.renewed(&call, start, renewal);
                }
                Ok(None) => {
                    let text = "the key is gone or somebody else's";
                    self.notices.renewal_refused(&call, start, &error(Cause::NotHeld, Source::Server, text));
                    hold.gone.store(true, Ordering::Release);
                    return self.notices.lost(&call, "the server says that it is not held any more");
                }
                Err(failed) => {
                    self.notices.renewal_failed(&call, start, &failed.error, failed.may_have_acted);
                    if self.clock.now_ns() > lease_end {
                        hold.gone.store(true, Ordering::Release);
                        return self.notices.lost(&call, "it could not be renewed before its end");
                    }
                }
            }
        }
    }
}

struct Hold {
    owner: String,
    /// The client knows that it lost it.
    gone: AtomicBool,
}

struct KeepAlive {
    stop: tokio::sync::watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

/// Which actor holds which lock.
type HoldKey = (String, String);
type Holds = HashMap<HoldKey, (Arc<Hold>, Option<KeepAlive>)>;

struct Client {
    inner: Arc<Inner>,
    holds: Mutex<Holds>,
}

impl Client {
    fn key(call: &Call) -> HoldKey {
        (call.process.clone(), call.lock.clone())
    }

    fn hold(&self, call: &Call) -> Option<Arc<Hold>> {
        let holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        holds.get(&Self::key(call)).map(|(hold, _)| Arc::clone(hold))
    }

    fn begin_hold(&self, call: &Call, owner: String) {
        let hold = Arc::new(Hold { owner, gone: AtomicBool::new(false) });
        let keep_alive = self.inner.form.renew.map(|_| {
            let (stop, stopped) = tokio::sync::watch::channel(false);
            let inner = Arc::clone(&self.inner);
            let task = tokio::spawn(inner.keep_alive(call.clone(), Arc::clone(&hold), stopped));
            KeepAlive { stop, task }
        });
        self.holds.lock().unwrap_or_else(PoisonError::into_inner).insert(Self::key(call), (hold, keep_alive));
    }

    /// Ends the renewal, and waits for one under way: a renewal that the history does not show must not act.
    async fn stop_keep_alive(&self, call: &Call) {
        let keep_alive = {
            let mut holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
            holds.get_mut(&Self::key(call)).and_then(|(_, keep_alive)| keep_alive.take())
        };
        if let Some(KeepAlive { stop, task }) = keep_alive {
            let _ = stop.send(true);
            let _ = task.await;
        }
    }

    async fn get_then_delete(&self, call: &Call, owner: &str) -> Result<u64, Failed> {
        let key = lock_key(call);
        let present: Option<String> = self.inner.command(redis::cmd("GET").arg(&key)).await?;
        if present.as_deref() != Some(owner) {
            return Ok(0);
        }
        call.gate("release.between").await;
        self.inner.command(redis::cmd("DEL").arg(&key)).await
    }
}

#[async_trait]
impl LockClient for Client {
    async fn acquire(&self, call: &Call) -> Outcome<Grant> {
        match poll(call.wait, || self.inner.try_acquire(call)).await {
            Outcome::Ok((grant, owner)) => {
                self.begin_hold(call, owner);
                Outcome::Ok(grant)
            }
            other => other.map(|(grant, _)| grant),
        }
    }

    async fn renew(&self, call: &Call) -> Outcome<Renewal> {
        let Some(hold) = self.hold(call) else {
            return Outcome::Fail(error(Cause::NotHeld, Source::Library, "never acquired"));
        };
        let renewed = self.inner.renew(call, &hold.owner).await;
        call.gate("renew.sent").await;
        match renewed {
            Ok(Some(renewal)) => Outcome::Ok(renewal),
            Ok(None) => {
                let text = "the key is gone or somebody else's";
                Outcome::Fail(error(Cause::NotHeld, Source::Server, text))
            }
            Err(failed) => failed.into(),
        }
    }

    async fn release(&self, call: &Call) -> Outcome<Released> {
        self.stop_keep_alive(call).await;
        let Some(hold) = self.hold(call) else {
            return Outcome::Fail(error(Cause::NotHeld, Source::Library, "never acquired"));
        };
        hold.gone.store(true, Ordering::Release);
        let deleted: Result<u64, Failed> = match self.inner.form.release {
            ReleaseForm::CompareAndDelete => {
                self.inner.script(COMPARE_AND_DELETE, call, &[&hold.owner]).await
            }
            ReleaseForm::Delete => self.inner.command(redis::cmd("DEL").arg(lock_key(call))).await,
            ReleaseForm::GetThenDelete => self.get_then_delete(call, &hold.owner).await,
        };
        match deleted {
            Ok(1..) => Outcome::Ok(Released::Yes),
            Ok(0) => Outcome::Ok(Released::No),
            Err(failed) => failed.into(),
        }
    }

    async fn held(&self, call: &Call) -> Outcome<bool> {
        let Some(hold) = self.hold(call) else { return Outcome::Ok(false) };
        if self.inner.form.held_local {
            return Outcome::Ok(!hold.gone.load(Ordering::Acquire));
        }
        let present: Result<Option<String>, Failed> =
            self.inner.command(redis::cmd("GET").arg(lock_key(call))).await;
        match present {
            Ok(value) => Outcome::Ok(value.as_deref() == Some(hold.owner.as_str())),
            Err(failed) => failed.into(),
        }
    }
}
