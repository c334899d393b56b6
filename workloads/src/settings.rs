//! Is a plan one that can be run? Names become registry items, options are checked, faults fitted to the lock.

use std::time::Duration;

use fencepost_checker::{
    contract::{Contract, TokenSource},
    plan::Plan,
    registry::{Choice, ChoiceError, Item, Options, find},
};
use fencepost_nemesis::{
    NEMESES,
    fault::{Fault, PlanError, PlannedFault, Setting},
};

use crate::{
    FENCES, LOCKS, RESOURCES, WORKLOADS,
    fence::Fence,
    lock::Lock,
    protocol::{Protected, Step},
    resource::{Resource, ResourceSetup},
    workload::Workload,
};

/// Why a plan cannot be run. The texts are fragments that fit after "error: ".
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// A name or an option is off.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// A fault does not fit.
    #[error(transparent)]
    Fault(#[from] PlanError),
    /// A number is out of bounds.
    #[error("{what} cannot be {given}: {why}")]
    Bound {
        /// Which setting.
        what: &'static str,
        /// What was given.
        given: String,
        /// Why not, and what to do.
        why: &'static str,
    },
    /// A fence without what it needs.
    #[error("fence '{fence}' needs {needs}, and {what} '{name}' has none; use {instead} instead")]
    Fence {
        /// The fence.
        fence: &'static str,
        /// What it needs.
        needs: &'static str,
        /// What does not give it: `lock` or `workload`.
        what: &'static str,
        /// Its name.
        name: String,
        /// What to use.
        instead: &'static str,
    },
    /// Options that exclude each other.
    #[error("{0}")]
    Conflict(String),
}

/// A plan, resolved.
pub struct Setup {
    /// The lock.
    pub lock: &'static dyn Lock,
    /// Its options.
    pub lock_options: Options,
    /// What it promises.
    pub contract: Contract,
    /// The steps of a tenure.
    pub steps: Vec<Step>,
    /// Locks and keys.
    pub protected: Vec<Protected>,
    /// The fence.
    pub fence: &'static Fence,
    /// The fence as chosen.
    pub fence_choice: Choice,
    /// The resource.
    pub resource: &'static dyn Resource,
    /// What it is set up with.
    pub resource_setup: ResourceSetup,
    /// The faults.
    pub faults: Vec<PlannedFault>,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("lock", &self.lock.item().name).finish_non_exhaustive()
    }
}

fn choose<T>(
    kind: &'static str,
    items: &'static [T],
    item_of: impl Fn(&T) -> Item,
    choice: &Choice,
) -> Result<(&'static T, Options), ChoiceError> {
    let place = find(kind, items, &item_of, &choice.name)?;
    let item = &items[place];
    Ok((item, Options::check(kind, item_of(item), choice)?))
}

/// The lock of a choice.
///
/// # Errors
/// [`ChoiceError`] with the nearest known name.
pub fn lock(choice: &Choice) -> Result<(&'static dyn Lock, Options), ChoiceError> {
    choose("lock", LOCKS, |lock| lock.item(), choice).map(|(lock, options)| (*lock, options))
}

/// The resource of a choice.
///
/// # Errors
/// [`ChoiceError`] with the nearest known name.
pub fn resource(choice: &Choice) -> Result<(&'static dyn Resource, Options), ChoiceError> {
    choose("resource", RESOURCES, |resource| resource.item(), choice)
        .map(|(resource, options)| (*resource, options))
}

fn workload(choice: &Choice) -> Result<(&'static dyn Workload, Options), ChoiceError> {
    choose("workload", WORKLOADS, |workload| workload.item(), choice)
        .map(|(workload, options)| (*workload, options))
}

fn nemesis(choice: &Choice) -> Result<(&'static dyn Fault, Options), ChoiceError> {
    choose("nemesis", NEMESES, |fault| fault.item(), choice).map(|(fault, options)| (*fault, options))
}

/// Checks a whole plan.
///
/// # Errors
/// [`SettingError`], always a mistake in what was asked for.
pub fn resolve(plan: &Plan) -> Result<Setup, SettingError> {
    check_bounds(plan)?;
    let (lock, lock_options) = lock(&plan.lock)?;
    let contract = lock.contract(&lock_options);
    lock.check(&lock_options, Duration::from_millis(plan.ttl_ms))?;
    let (workload, workload_options) = workload(&plan.workload)?;
    let mut steps = workload.steps(&workload_options, plan.hold)?;
    let fence_choice: Choice = plan.fence.parse()?;
    let (fence, fence_options) = choose("fence", FENCES, |fence| fence.item, &fence_choice)?;
    check_fence(plan, fence, &contract, &steps)?;
    if fence.item.name == "owner" && fence_options.get("claim") == "early" {
        // Before all other accesses, also before the work: that is what makes a late holder's write stale.
        steps.insert(1, Step::Claim);
    }
    let (resource, options) = resource(&plan.resource)?;
    let resource_setup = ResourceSetup { options, fence: fence_choice.clone() };
    check_resource(plan, fence, &resource_setup)?;
    let setting = setting(plan, lock, &lock_options, &steps, &resource_setup);
    let mut faults = Vec::new();
    for choice in &plan.nemeses {
        let (fault, options) = nemesis(choice)?;
        faults.extend(fault.plan(&options, &setting)?);
    }
    let protected = protected(plan, workload);
    Ok(Setup {
        lock,
        lock_options,
        contract,
        steps,
        protected,
        fence,
        fence_choice,
        resource,
        resource_setup,
        faults,
    })
}

fn check_bounds(plan: &Plan) -> Result<(), SettingError> {
    const MOST_ACTORS: u64 = 1024;
    const MOST_KEYS: u32 = 10_000;
    const LONGEST_TTL_MS: u64 = 24 * 3_600_000;
    let actors = u64::from(plan.clients) * u64::from(plan.actors);
    let bound = |what, given: u64, why| Err(SettingError::Bound { what, given: given.to_string(), why });
    match () {
        () if plan.ttl_ms == 0 => {
            bound("--ttl", 0, "a lease that ends at once protects nothing; give at least 1ms")
        }
        () if plan.ttl_ms > LONGEST_TTL_MS => bound("--ttl", plan.ttl_ms, "the longest lease is 24h"),
        () if plan.clients == 0 => bound("--clients", 0, "somebody must take the lock; give at least 1"),
        () if plan.actors == 0 => bound("--actors", 0, "each client needs at least 1"),
        () if plan.keys == 0 => bound("--keys", 0, "there must be a lock to take; give at least 1"),
        () if plan.keys > MOST_KEYS => bound("--keys", plan.keys.into(), "at most 10000"),
        () if plan.time_ms == 0 => bound("--time", 0, "nothing happens in no time; give at least 1ms"),
        () if actors > MOST_ACTORS => bound("clients times actors", actors, "at most 1024 on one machine"),
        () => Ok(()),
    }
}

fn check_fence(plan: &Plan, fence: &Fence, contract: &Contract, steps: &[Step]) -> Result<(), SettingError> {
    let name = fence.item.name;
    if fence.needs_token && contract.token == TokenSource::None {
        return Err(SettingError::Fence {
            fence: name,
            needs: "an ordered token",
            what: "lock",
            name: plan.lock.to_string(),
            instead: "--fence owner, --fence version (with --workload counter), or a lock that gives tokens",
        });
    }
    if fence.needs_read && !steps.contains(&Step::Read) {
        return Err(SettingError::Fence {
            fence: name,
            needs: "a read before the write",
            what: "workload",
            name: plan.workload.to_string(),
            instead: "--workload counter, or --fence token",
        });
    }
    Ok(())
}

fn check_resource(plan: &Plan, fence: &Fence, setup: &ResourceSetup) -> Result<(), SettingError> {
    let broken = ["storage", "check"].iter().find(|name| setup.options.is_given(name));
    let (Some(option), false) = (broken, fence.needs_token && fence.item.name != "unchecked") else {
        return Ok(());
    };
    let value = setup.options.get(option);
    if matches!(value, "sqlite" | "atomic") {
        return Ok(());
    }
    Err(SettingError::Conflict(format!(
        "resource '{}' is told how to check tokens, and fence '{}' checks none: add --fence token or token-write",
        plan.resource, fence.item.name
    )))
}

fn setting(
    plan: &Plan,
    lock: &dyn Lock,
    options: &Options,
    steps: &[Step],
    resource: &ResourceSetup,
) -> Setting {
    let mut names: Vec<_> = steps.iter().map(Step::name).collect();
    names.dedup();
    let two_phase = plan.fence == "token-racy" || resource.options.get("check") == "check-then-write";
    let asks = steps.iter().any(|step| matches!(step, Step::Write { after_check: true, .. }));
    let mut points: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    points.extend(lock.gates(options).iter().map(|gate| (*gate).to_owned()));
    if two_phase || asks {
        points.push("write.between".to_owned());
    }
    Setting {
        ttl: Duration::from_millis(plan.ttl_ms),
        lock: plan.lock.name.clone(),
        steps: names,
        points,
        servers: lock.servers(options).len(),
    }
}

fn protected(plan: &Plan, workload: &dyn Workload) -> Vec<Protected> {
    let (lock, key) = (workload.lock(), workload.key());
    if plan.keys == 1 {
        return vec![Protected { lock: lock.to_owned(), key: key.to_owned() }];
    }
    (1..=plan.keys).map(|n| Protected { lock: format!("{lock}-{n}"), key: format!("{key}-{n}") }).collect()
}
