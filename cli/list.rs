//! `list`: what there is to choose from, read from the registries.

use std::io::Write;

use anstyle::Style;
use clap::{Args, ValueEnum};
use fencepost_checker::{anomalies::ANOMALIES, models::MODELS, registry::Item, verdict::Severity};
use fencepost_nemesis::NEMESES;
use fencepost_results::words;
use fencepost_workloads::{FENCES, LOCKS, RESOURCES, WORKLOADS};
use serde::Serialize;

use crate::{exit::Exit, output};

/// List what there is to choose from
///
/// Names, what they are, and their options with defaults. An option is given as NAME?option=value.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fencepost list nemeses
  fencepost list anomalies --json | jq -r '.[].name'")]
pub(crate) struct List {
    /// Which kind
    #[arg(value_enum)]
    kind: Kind,
    /// Print as JSON: objects with name, summary, documentation, options
    #[arg(long)]
    json: bool,
}

/// A registry.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// Locks and their mistakes
    Locks,
    /// Protected resources
    Resources,
    /// How a resource tells rightful accesses from stale ones
    Fences,
    /// What clients do under the lock
    Workloads,
    /// Faults
    Nemeses,
    /// What can be found
    Anomalies,
    /// What a lock or register may do, for `check --model`
    Models,
}

/// An item of any registry.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    item: Item,
    /// Of an anomaly.
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<Severity>,
}

impl From<Item> for Listed {
    fn from(item: Item) -> Self {
        Self { item, severity: None }
    }
}

impl Kind {
    fn items(self) -> Vec<Listed> {
        match self {
            Self::Locks => LOCKS.iter().map(|lock| lock.item().into()).collect(),
            Self::Resources => RESOURCES.iter().map(|resource| resource.item().into()).collect(),
            Self::Fences => FENCES.iter().map(|fence| fence.item.into()).collect(),
            Self::Workloads => WORKLOADS.iter().map(|workload| workload.item().into()).collect(),
            Self::Nemeses => NEMESES.iter().map(|nemesis| nemesis.item().into()).collect(),
            Self::Anomalies => ANOMALIES
                .iter()
                .map(|kind| Listed { item: kind.item, severity: Some(kind.severity) })
                .collect(),
            Self::Models => MODELS.iter().map(|model| model.item.into()).collect(),
        }
    }
}

impl List {
    /// Runs the command.
    pub(crate) fn execute(self) -> anyhow::Result<Exit> {
        let items = self.kind.items();
        let mut out = output::stdout();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &items)?;
            writeln!(out)?;
        } else {
            print(&mut out, &items)?;
        }
        out.flush()?;
        Ok(Exit::Expected)
    }
}

fn print(out: &mut impl Write, items: &[Listed]) -> std::io::Result<()> {
    const NAME: Style = Style::new().bold();
    const DIM: Style = Style::new().dimmed();
    let width = items.iter().map(|listed| listed.item.name.len()).max().unwrap_or(0);
    for Listed { item, severity } in items {
        let severity =
            severity.map(|severity| format!(" ({})", words::severity(severity))).unwrap_or_default();
        writeln!(out, "{NAME}{:width$}{NAME:#}  {}{severity}", item.name, item.summary)?;
        for option in item.options {
            let values = if option.values.is_empty() {
                String::new()
            } else {
                format!(" ({})", option.values.join("|"))
            };
            let default = if option.default.is_empty() { "" } else { option.default };
            writeln!(
                out,
                "{:width$}    {DIM}?{}={default}{DIM:#}  {}{values}",
                "", option.name, option.summary
            )?;
        }
    }
    Ok(())
}
