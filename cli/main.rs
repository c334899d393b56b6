//! The command: parse, dispatch, map errors to exit codes. One file a subcommand.

mod exit;
mod one_test;
mod output;
mod parent;
mod testing;
mod told;

mod check;
mod demo;
mod doctor;
mod list;
mod replay;
mod report;
mod resource;
mod run;
mod suite;
mod worker;

use std::{io::Write as _, os::fd::AsFd as _, process::ExitCode};

use anstyle::{AnsiColor, Style};
use clap::{Parser, Subcommand, error::ErrorKind};
use exit::Exit;

/// Does a distributed lock exclude, and if it does not, does your data survive?
///
/// Fencepost drives real locks with real client processes, breaks things on purpose, records what every
/// client saw, and proves from that record what went wrong.
#[derive(Debug, Parser)]
#[command(name = "fencepost", version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
   0  as expected                        65  malformed input
   1  a forbidden anomaly was found      69  a backend is missing or does not start
   2  unknown                            70  an internal error
   3  a required anomaly is missing,     74  the store cannot be written
      or a threshold is breached         77  rights are missing
  64  usage, or a file is not there     130  interrupted";

/// Names the subcommands: one line each, `Name(file)`, where the file holds `struct Name` (the arguments)
/// with `fn execute(self) -> anyhow::Result<Exit>`. A hidden one says `#[command(hide = true)]` there.
macro_rules! commands {
    ($($name:ident($file:ident),)*) => {
        #[derive(Debug, Subcommand)]
        #[expect(clippy::large_enum_variant, reason = "parsed once, never copied")]
        enum Command {
            $($name($file::$name),)*
        }

        impl Command {
            fn execute(self) -> anyhow::Result<Exit> {
                match self {
                    $(Self::$name(command) => command.execute(),)*
                }
            }
        }
    };
}

commands! {
    Demo(demo),
    Run(run),
    Suite(suite),
    Check(check),
    Report(report),
    Replay(replay),
    List(list),
    Doctor(doctor),
    Worker(worker),
    Resource(resource),
}

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| die_of(panic)));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error).into(),
    };
    if matches!(cli.command, Command::Run(_)) && !parent::is_alive() {
        return Exit::Interrupted.into();
    }
    match cli.command.execute() {
        Ok(exit) => exit.into(),
        Err(error) => {
            report(&error);
            exit::code_of(&error).into()
        }
    }
}

/// A slip of our own, in whatever thread: the run must not go on without a part of it. What cleans up after a
/// killed run cleans up after this, too.
fn die_of(panic: &std::panic::PanicHookInfo<'_>) -> ! {
    let text = format!(
        "error: internal error: {panic}\nall that was started is gone, what was recorded is kept and can be judged: \
         fencepost check <the run's directory>; please report this with the message above\n"
    );
    // Not through the usual stream: its lock may be held by a thread that waits for this one.
    if let Ok(stderr) = std::io::stderr().as_fd().try_clone_to_owned() {
        let _ = std::fs::File::from(stderr).write_all(text.as_bytes());
    }
    std::process::exit(Exit::Internal as i32)
}

/// Prints what the parser has to say. Its own code for a wrong usage is 2, which here means "unknown".
fn usage(error: &clap::Error) -> Exit {
    // A closed pipe is no reason to change the code.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Expected,
        _ => Exit::Usage,
    }
}

/// Prints an error with all its causes.
fn report(error: &anyhow::Error) {
    let style = Style::new().fg_color(Some(AnsiColor::Red.into())).bold();
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(output::stderr(), "{style}error:{style:#} {error:#}");
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
