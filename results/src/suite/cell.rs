//! What is one cell? A test with its expectation, and the command line that runs it.

use std::{collections::BTreeMap, time::Duration};

use fencepost_checker::plan::Expectation;
use serde::{Deserialize, Serialize};
use toml::Value;

use super::{
    file::{Block, Faults, OnImpossible, SuiteError, SuiteFile, length},
    pattern,
};
use crate::expectation;

/// The most cells that a suite may have.
pub const CELLS_MAX: usize = 5_000;

/// How long `run` lasts unless told otherwise.
const TIME_DEFAULT: Duration = Duration::from_secs(10);

/// For how many times its length a required anomaly is sought, unless the suite says.
const BUDGET_RUNS: u32 = 4;

/// One test of a suite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Its name: `lock/workload/faults/fence`, and what else tells it from others.
    pub name: String,
    /// The lock, with options.
    pub lock: String,
    /// The workload, with options.
    pub workload: String,
    /// The faults, with options; `none` for none.
    pub nemeses: Vec<String>,
    /// The fence.
    pub fence: String,
    /// The lease's length, if the suite varies it.
    pub ttl: Option<String>,
    /// The seed of the first attempt; each further one takes the next.
    pub seed: u64,
    /// Settings, by the name of their flag.
    pub settings: BTreeMap<String, String>,
    /// What it must not, may and must find.
    pub expectation: Expectation,
    /// How long one run takes.
    pub time: Duration,
    /// How long a required anomaly is sought.
    pub budget: Duration,
    /// Why its outcome does not count.
    pub quarantine: Option<String>,
    /// It is skipped if it cannot be put together.
    pub skip_if_impossible: bool,
}

impl Cell {
    /// The arguments of `fencepost` that run this cell with this seed.
    #[must_use]
    pub fn arguments(&self, seed: u64) -> Vec<String> {
        let mut words = vec!["run".to_owned()];
        let mut flag = |name: &str, value: &str| words.extend([format!("--{name}"), value.to_owned()]);
        flag("lock", &self.lock);
        flag("workload", &self.workload);
        self.nemeses.iter().for_each(|nemesis| flag("nemesis", nemesis));
        flag("fence", &self.fence);
        flag("seed", &seed.to_string());
        for (ids, name) in [
            (&self.expectation.forbid, "forbid"),
            (&self.expectation.allow, "allow"),
            (&self.expectation.require, "require"),
        ] {
            ids.iter().for_each(|id| flag(name, id));
        }
        for (name, value) in &self.settings {
            match value.as_str() {
                "true" => words.push(format!("--{name}")),
                "false" => {}
                value => words.extend([format!("--{name}"), value.to_owned()]),
            }
        }
        words
    }

    /// The faults as one word.
    #[must_use]
    pub fn faults(&self) -> String {
        self.nemeses.join(" + ")
    }
}

/// All cells of a suite, in the order of the file. `locks` are the names for which `*` stands.
///
/// # Errors
/// [`SuiteError`].
pub fn expand(file: &SuiteFile, locks: &[&str]) -> Result<Vec<Cell>, SuiteError> {
    let mut cells: Vec<Cell> = Vec::new();
    for block in &file.cells {
        expand_block(file, block, locks, &mut cells)?;
    }
    if cells.is_empty() {
        return Err(SuiteError::Empty);
    }
    for cell in &mut cells {
        expect(file, cell)?;
    }
    distinguish(&mut cells);
    check_patterns(file, &cells)?;
    Ok(cells)
}

/// Checks that no pattern misses all cells: a slip in one would make what it forbids or bounds vacuous.
fn check_patterns(file: &SuiteFile, cells: &[Cell]) -> Result<(), SuiteError> {
    let expect =
        (1..).zip(&file.expect).map(|(number, expect)| ("[[expect]]", number, "cells", &expect.cells));
    let numbered = || (1..).zip(&file.thresholds);
    let bound = numbered().map(|(number, threshold)| ("[[thresholds]]", number, "cells", &threshold.cells));
    let compared = numbered().filter_map(|(number, threshold)| {
        Some(("[[thresholds]]", number, "baseline", threshold.baseline.as_ref()?))
    });
    for (table, number, key, pattern) in expect.chain(bound).chain(compared) {
        let mut names = cells.iter().map(|cell| cell.name.as_str());
        if !names.clone().any(|name| pattern::matches(pattern, name)) {
            let place = format!("{key} = '{pattern}' of {table} {number}");
            let nearest = pattern::nearest(pattern, &mut names).unwrap_or_default().to_owned();
            return Err(SuiteError::NoCell { place, nearest });
        }
    }
    Ok(())
}

fn expand_block(
    file: &SuiteFile,
    block: &Block,
    locks: &[&str],
    cells: &mut Vec<Cell>,
) -> Result<(), SuiteError> {
    let seeds = if block.seeds.is_empty() { &file.seeds } else { &block.seeds };
    let runs: Vec<(u64, u64)> =
        seeds.iter().flat_map(|seed| (0..block.repeats.max(1)).map(move |repeat| (*seed, repeat))).collect();
    for lock in chosen_locks(&block.locks, locks) {
        for workload in &block.workloads {
            for faults in &block.nemeses {
                for fence in &block.fences {
                    for resource in optional(&block.resources) {
                        for ttl in optional(&block.ttls) {
                            for run in &runs {
                                if cells.len() >= CELLS_MAX {
                                    return Err(SuiteError::TooMany { max: CELLS_MAX });
                                }
                                let names = Names {
                                    lock: &lock,
                                    workload,
                                    faults,
                                    fence,
                                    resource,
                                    ttl,
                                    several: runs.len() > 1,
                                };
                                cells.push(cell(file, block, &names, *run)?);
                            }
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// The values that make a cell one of its block.
struct Names<'b> {
    lock: &'b str,
    workload: &'b str,
    faults: &'b Faults,
    fence: &'b str,
    resource: Option<&'b str>,
    ttl: Option<&'b str>,
    /// There are several seeds or repeats.
    several: bool,
}

fn cell(
    file: &SuiteFile,
    block: &Block,
    names: &Names<'_>,
    (seed, repeat): (u64, u64),
) -> Result<Cell, SuiteError> {
    // Far enough apart that attempts of one repeat do not run into the next.
    const REPEAT_STRIDE: u64 = 1_000;
    let nemeses = match names.faults {
        Faults::One(fault) => vec![fault.clone()],
        Faults::Several(faults) => faults.clone(),
    };
    let mut settings = texts(&file.defaults);
    settings.extend(texts(&block.settings));
    settings.extend(names.resource.map(|resource| ("resource".to_owned(), resource.to_owned())));
    settings.extend(names.ttl.map(|ttl| ("ttl".to_owned(), ttl.to_owned())));
    let time = settings.get("time").map_or(Ok(TIME_DEFAULT), |text| length("time", text))?;
    let budget = block.budget.as_deref().map_or(Ok(time * BUDGET_RUNS), |text| length("budget", text))?;
    let mut name = format!("{}/{}/{}/{}", names.lock, names.workload, nemeses.join("+"), names.fence);
    let mut tell = |what: &str, value: &str| name += &format!(" {what}={value}");
    names.resource.iter().for_each(|resource| tell("resource", resource));
    names.ttl.iter().for_each(|ttl| tell("ttl", ttl));
    if names.several {
        tell("seed", &(seed + repeat * REPEAT_STRIDE).to_string());
    }
    Ok(Cell {
        name,
        lock: names.lock.to_owned(),
        workload: names.workload.to_owned(),
        nemeses,
        fence: names.fence.to_owned(),
        ttl: names.ttl.map(str::to_owned),
        seed: seed + repeat * REPEAT_STRIDE,
        settings,
        expectation: block.expectation.clone(),
        time,
        budget,
        quarantine: block.quarantine.clone(),
        skip_if_impossible: block.impossible == OnImpossible::Skip,
    })
}

/// The values, or one time none.
fn optional(values: &[String]) -> Vec<Option<&str>> {
    if values.is_empty() { vec![None] } else { values.iter().map(|value| Some(value.as_str())).collect() }
}

/// The block's locks, with `*` replaced by all and `!NAME` taken out.
fn chosen_locks(given: &[String], all: &[&str]) -> Vec<String> {
    let mut chosen: Vec<String> = Vec::new();
    for lock in given {
        match lock.strip_prefix('!') {
            Some(excluded) => chosen.retain(|name| name != excluded),
            None if lock == "*" => chosen.extend(all.iter().map(|&name| name.to_owned())),
            None => chosen.push(lock.clone()),
        }
    }
    chosen
}

fn texts(settings: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let known = settings.iter().filter(|(name, _)| super::file::SETTINGS.contains(&name.as_str()));
    known.map(|(name, value)| (name.clone(), text(value))).collect()
}

/// Adds the expectations whose pattern matches.
fn expect(file: &SuiteFile, cell: &mut Cell) -> Result<(), SuiteError> {
    for expect in file.expect.iter().filter(|expect| pattern::matches(&expect.cells, &cell.name)) {
        let Expectation { forbid, allow, require } = expect.expectation.clone();
        cell.expectation.forbid.extend(forbid);
        cell.expectation.allow.extend(allow);
        cell.expectation.require.extend(require);
        if expect.quarantine.is_some() {
            cell.quarantine.clone_from(&expect.quarantine);
        }
    }
    expectation::validate(&cell.expectation)
        .map_err(|error| SuiteError::Expectation { place: format!("cell '{}'", cell.name), error })
}

/// Numbers cells of one name, which differ in their block's settings.
fn distinguish(cells: &mut [Cell]) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for cell in cells {
        let count = seen.entry(cell.name.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            cell.name = format!("{} #{count}", cell.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<Cell> {
        expand(&SuiteFile::parse(text).unwrap().0, &["sqlite", "redis", "none"]).unwrap()
    }

    #[test]
    fn a_block_is_every_combination() {
        let cells = cells(
            "name = 'x'\n[[cells]]\nlocks = ['*', '!none']\nworkloads = ['counter', 'mutex']\n\
             nemeses = ['none', ['pause-holder', 'kill-server']]\nfences = ['none', 'token']\nttls = ['1s']\n",
        );
        assert_eq!(cells.len(), 2 * 2 * 2 * 2);
        assert_eq!(cells[0].name, "sqlite/counter/none/none ttl=1s");
        assert!(cells.iter().any(|cell| cell.name == "redis/mutex/pause-holder+kill-server/token ttl=1s"));
    }

    #[test]
    fn a_cell_knows_its_command_line() {
        let cells = cells(
            "name = 'x'\n[defaults]\ntime = '2s'\nclients = 3\n[[cells]]\nlocks = ['redis?aof=no']\n\
             workloads = ['counter']\nrequire = ['double-grant']\nseeds = [4]\n[cells.settings]\nstop-on-violation = true\n\
             [[expect]]\ncells = 'redis*'\nallow = ['*']\n",
        );
        let line = cells[0].arguments(5).join(" ");
        assert_eq!(
            line,
            "run --lock redis?aof=no --workload counter --nemesis none --fence none --seed 5 --allow * --require double-grant \
             --clients 3 --stop-on-violation --time 2s"
        );
        assert_eq!((cells[0].time.as_secs(), cells[0].budget.as_secs()), (2, 8));
    }

    #[test]
    fn repeats_and_equal_names_are_told_apart() {
        let block = "[[cells]]\nlocks = ['redis']\nworkloads = ['counter']\n";
        let cells = cells(&format!("name = 'x'\n{block}repeats = 2\n{block}{block}"));
        let names: Vec<_> = cells.iter().map(|cell| cell.name.as_str()).collect();
        let base = "redis/counter/none/none";
        assert_eq!(
            names,
            [format!("{base} seed=1"), format!("{base} seed=1001"), base.to_owned(), format!("{base} #2")]
        );
    }

    #[test]
    fn a_pattern_that_matches_no_cell_is_refused() {
        let suite = "name = 'x'\n[[cells]]\nlocks = ['redis']\nworkloads = ['counter']\nnemeses = ['none', 'pause-holder']\n";
        let bound = "metric = 'available'\nat-least = 0.5";
        for (more, expected) in [
            (
                "[[expect]]\ncells = '*/pause-holdr/*'\nforbid = ['stale-write']".to_owned(),
                "cells = '*/pause-holdr/*' of [[expect]] 1 matches no cell; the nearest is 'redis/counter/pause-holder/none'",
            ),
            (format!("[[thresholds]]\ncells = 'sqlite*'\n{bound}"), "cells = 'sqlite*' of [[thresholds]] 1"),
            (
                format!("[[thresholds]]\ncells = '*'\nbaseline = 'radis/*'\n{bound}"),
                "baseline = 'radis/*' of [[thresholds]] 1",
            ),
        ] {
            let file = SuiteFile::parse(&format!("{suite}{more}")).unwrap().0;
            let error = expand(&file, &[]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn an_expectation_that_contradicts_its_block_is_refused() {
        let text = "name = 'x'\n[[cells]]\nlocks = ['redis']\nworkloads = ['counter']\nrequire = ['stale-write']\n\
                    [[expect]]\ncells = '*'\nforbid = ['stale-write']\n";
        let error = expand(&SuiteFile::parse(text).unwrap().0, &[]).unwrap_err().to_string();
        assert!(error.contains("cell 'redis/counter/none/none': anomaly 'stale-write' is both"), "{error}");
    }
}
