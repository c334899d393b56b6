//! `doctor`: what can this machine run, and how does one install the rest?

use std::{io::Write, process::Command};

use anstyle::{AnsiColor, Style};
use clap::Args;
use fencepost_nemesis::capability;
use serde::Serialize;

use crate::{exit::Exit, output};

/// Tell what this machine can run, and how to install the rest
///
/// Looks for the servers behind the locks and for what faults need. Changes nothing, starts nothing that stays.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fencepost doctor
  fencepost doctor --json | jq -r '.[] | select(.there | not) | .install'")]
pub(crate) struct Doctor {
    /// Print as JSON: objects with name, purpose, there, detail, install
    #[arg(long)]
    json: bool,
}

/// One thing that was looked for.
#[derive(Debug, Serialize)]
struct Finding {
    name: &'static str,
    purpose: &'static str,
    there: bool,
    /// The version or place; why it is not there.
    detail: String,
    /// The command that makes it be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    install: Option<&'static str>,
}

/// A server that is looked for on the machine.
struct Program {
    name: &'static str,
    purpose: &'static str,
    install: &'static str,
}

const PROGRAMS: &[Program] = &[Program {
    name: "redis-server",
    purpose: "the lock 'redis'",
    install: "sudo apt-get install redis-server",
}];

impl Doctor {
    /// Runs the command.
    pub(crate) fn execute(self) -> anyhow::Result<Exit> {
        let findings = examine();
        let mut out = output::stdout();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &findings)?;
            writeln!(out)?;
        } else {
            print(&mut out, &findings)?;
        }
        out.flush()?;
        Ok(Exit::Expected)
    }
}

fn examine() -> Vec<Finding> {
    let embedded = Finding {
        name: "sqlite",
        purpose: "the lock 'sqlite' and the resource 'service'",
        there: true,
        detail: "built in".to_owned(),
        install: None,
    };
    let mut findings = vec![embedded];
    findings.extend(PROGRAMS.iter().map(look_for));
    findings.extend(capability::survey().into_iter().map(|capability| {
        let there = capability.state.is_ok();
        let install = (!there && capability.name == "pid-namespace").then_some(
            "sudo sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0",
        );
        let (Ok(detail) | Err(detail)) = capability.state;
        Finding { name: capability.name, purpose: capability.purpose, there, detail, install }
    }));
    findings
}

fn look_for(program: &Program) -> Finding {
    let Program { name, purpose, install } = *program;
    match capability::find_program(name) {
        Ok(path) => {
            let version = version(&path).unwrap_or_else(|| "version unknown".to_owned());
            Finding {
                name,
                purpose,
                there: true,
                detail: format!("{version}, {}", path.display()),
                install: None,
            }
        }
        Err(_) => {
            let detail = "not on PATH, nor where distributions put servers".to_owned();
            Finding { name, purpose, there: false, detail, install: Some(install) }
        }
    }
}

/// What a server says of its own version: `v=7.0.15` of Redis.
fn version(path: &std::path::Path) -> Option<String> {
    let output = Command::new(path).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let word = text.split_whitespace().find(|word| word.contains(|c: char| c.is_ascii_digit()))?;
    Some(word.trim_start_matches("v=").to_owned())
}

fn print(out: &mut impl Write, findings: &[Finding]) -> std::io::Result<()> {
    const YES: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green)));
    const NO: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));
    let width = findings.iter().map(|finding| finding.name.len()).max().unwrap_or(0);
    for finding in findings {
        let (style, word) = if finding.there { (YES, "yes") } else { (NO, "no ") };
        writeln!(out, "{style}{word}{style:#}  {:width$}  {}", finding.name, finding.detail)?;
        writeln!(out, "     {:width$}  for {}", "", finding.purpose)?;
        if let Some(install) = finding.install {
            writeln!(out, "     {:width$}  to have it: {install}", "")?;
        }
    }
    Ok(())
}
