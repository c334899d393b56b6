//! `doctor`: what can this machine run, and how does one install the rest?

use std::{io::Write, process::Command};

use anstyle::{AnsiColor, Style};
use clap::Args;
use fencepost_checker::registry::{Choice, Options};
use fencepost_nemesis::capability;
use fencepost_workloads::LOCKS;
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
    purpose: String,
    there: bool,
    /// The version or place; why it is not there.
    detail: String,
    /// The command that makes it be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    install: Option<String>,
}

/// A server's program that locks need.
struct Program {
    name: &'static str,
    package: &'static str,
    version_argument: &'static str,
    locks: Vec<&'static str>,
}

/// The programs that the locks of this build need, each once.
fn programs() -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    for lock in LOCKS {
        let item = lock.item();
        // No option given: nothing that could be wrong.
        let Ok(options) = Options::check("lock", item, &Choice::default()) else { continue };
        for spec in lock.servers(&options) {
            match programs.iter_mut().find(|program| program.name == spec.program()) {
                Some(program) if program.locks.contains(&item.name) => {}
                Some(program) => program.locks.push(item.name),
                None => programs.push(Program {
                    name: spec.program(),
                    package: spec.package(),
                    version_argument: spec.version_argument(),
                    locks: vec![item.name],
                }),
            }
        }
    }
    programs
}

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
        purpose: "the lock 'sqlite' and the resource 'service'".to_owned(),
        there: true,
        detail: "built in".to_owned(),
        install: None,
    };
    let mut findings = vec![embedded];
    findings.extend(programs().iter().map(look_for));
    findings.extend(capability::survey().into_iter().map(|capability| {
        let there = capability.state.is_ok();
        let install = (!there && capability.name == "pid-namespace").then(|| ALLOW_NAMESPACES.to_owned());
        let (Ok(detail) | Err(detail)) = capability.state;
        Finding { name: capability.name, purpose: capability.purpose.to_owned(), there, detail, install }
    }));
    findings
}

/// The settings by which distributions forbid namespaces to ordinary users.
const ALLOW_NAMESPACES: &str =
    "sudo sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0";

fn look_for(program: &Program) -> Finding {
    let name = program.name;
    let purpose = format!("locks: {}", program.locks.join(", "));
    match capability::find_program(name) {
        Ok(path) => {
            let version =
                version(&path, program.version_argument).unwrap_or_else(|| "version unknown".to_owned());
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
            let install = Some(format!("sudo apt-get install {}", program.package));
            Finding { name, purpose, there: false, detail, install }
        }
    }
}

/// What a server says of its own version: `v=7.0.15` of Redis.
fn version(path: &std::path::Path, argument: &str) -> Option<String> {
    let output = Command::new(path).arg(argument).output().ok()?;
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
        if let Some(install) = &finding.install {
            writeln!(out, "     {:width$}  to have it: {install}", "")?;
        }
    }
    Ok(())
}
