//! What does a lock promise? Declared by each lock, recorded in the history's header.

use serde::{Deserialize, Serialize};

/// Who may hold at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// One owner.
    #[default]
    Exclusive,
    /// Many readers or one writer.
    Shared,
    /// Up to [`Contract::permits`].
    Counting,
}

/// What ends a hold besides its release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Term {
    /// The end of its ttl.
    Lease,
    /// The end of the client's session.
    Session,
    /// Nothing.
    #[default]
    None,
}

/// Who prolongs a lease, and whether the history shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Renews {
    /// Nobody, except by a `renew` operation of the history.
    #[default]
    Never,
    /// The library in the background; every renewal is a `renew` or `renewed` event.
    Recorded,
    /// A keep-alive that the history does not show.
    Hidden,
}

/// What a release checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReleaseCheck {
    /// It frees the lock only if it is the caller's, and says whether it was.
    #[default]
    OwnerChecked,
    /// It frees the caller's hold only, and is ok also where there was none.
    Idempotent,
    /// It frees the lock, whoever holds it.
    Blind,
}

/// Where the fencing token comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenSource {
    /// There is none.
    #[default]
    None,
    /// Drawn in the very step that grants.
    Atomic,
    /// Drawn before or after the grant.
    Apart,
}

/// Whose clock ends a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeaseClock {
    /// The server's.
    #[default]
    Server,
    /// The client's that takes it.
    Client,
}

/// A lock's promises. The default is a plain mutex: exclusive, without term or token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Contract {
    /// Who may hold at the same time.
    pub mode: Mode,
    /// How many may hold, for [`Mode::Counting`].
    pub permits: u64,
    /// May an owner take it again while he holds it?
    pub reentrant: bool,
    /// What ends a hold besides its release.
    pub term: Term,
    /// The resolution in which the service keeps time, milliseconds (g).
    pub granularity_ms: u64,
    /// Who prolongs a lease.
    pub renews: Renews,
    /// May the service itself lengthen a lease (etcd after a leader change)?
    pub prolongs: bool,
    /// What a release checks.
    pub release: ReleaseCheck,
    /// Where the token comes from.
    pub token: TokenSource,
    /// Does the client stop acting by itself when its validity is over?
    pub honours_validity: bool,
    /// Whose clock ends a lease.
    pub clock: LeaseClock,
    /// First come, first served?
    pub fifo: bool,
}

impl Default for Contract {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            permits: 1,
            reentrant: false,
            term: Term::default(),
            granularity_ms: 0,
            renews: Renews::default(),
            prolongs: false,
            release: ReleaseCheck::default(),
            token: TokenSource::default(),
            honours_validity: false,
            clock: LeaseClock::default(),
            fifo: false,
        }
    }
}

impl Contract {
    /// What makes no sense in it, if anything.
    #[must_use]
    pub fn flaw(&self) -> Option<&'static str> {
        if self.mode == Mode::Counting && self.permits == 0 {
            return Some("contract: a counting lock needs permits of at least 1");
        }
        None
    }
}
