//! Which fences are there, and what must an access carry for each?

use fencepost_checker::registry::{Item, OptionSpec};

/// How the resource tells a rightful access from a stale one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Its name, summary, documentation and options.
    pub item: Item,
    /// The lock must give an ordered token.
    pub needs_token: bool,
    /// The workload must read before it writes.
    pub needs_read: bool,
}

/// Without options and needs.
const fn fence(name: &'static str, summary: &'static str, documentation: &'static str) -> Fence {
    Fence { item: Item { name, summary, documentation, options: &[] }, needs_token: false, needs_read: false }
}

const fn token_fence(name: &'static str, summary: &'static str, documentation: &'static str) -> Fence {
    Fence { needs_token: true, ..fence(name, summary, documentation) }
}

/// All fences, by name.
pub const FENCES: &[Fence] = &[
    fence("none", "no fence: everything is accepted", "The lock alone must protect the data."),
    token_fence(
        "unchecked",
        "the token is sent and ignored",
        "A resource that was handed tokens and never compared them: must be caught as fence-breach.",
    ),
    token_fence(
        "token",
        "reads and writes carry the token; accepted if it is not below the highest",
        "Every access raises the highest token, in the statement of the access itself. An expired holder's access is \
         turned away as soon as the next holder has made one.",
    ),
    token_fence(
        "token-write",
        "writes only; accepted if the token is above the highest",
        "The form that most articles show. Enough where a write does not depend on what was read; an expired \
         holder's write may still slip between the next holder's read and write.",
    ),
    token_fence(
        "token-racy",
        "checks the token, then writes, in two statements",
        "The check is right and comes too early: must be caught as fence-breach.",
    ),
    Fence {
        item: Item {
            name: "owner",
            summary: "an access claims the key for its owner; a write is accepted while the claim stands",
            documentation: "Needs no ordered token: a random value per hold is enough. Claiming late, after the read, \
                shows the hole that is left.",
            options: &[OptionSpec {
                name: "claim",
                summary: "when the key is claimed: early, before all else, or late, before the write",
                default: "early",
                values: &["early", "late"],
            }],
        },
        needs_token: false,
        needs_read: false,
    },
    Fence {
        needs_read: true,
        ..fence(
            "version",
            "optimistic concurrency: the version that was read must still be current",
            "Needs no lock at all for the safety of one key; the lock only saves work.",
        )
    },
];

/// The fence of this name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Fence> {
    FENCES.iter().find(|fence| fence.item.name == name)
}
