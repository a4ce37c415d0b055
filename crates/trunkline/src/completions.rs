//! `trunkline completions`: a script for a shell, generated from the definitions of the options.
//!
//! ```text
//!   source <(trunkline completions bash)
//! ```

use clap::ValueEnum;
use clap_complete::Shell;

use crate::exit::{Exit, Failure};
use crate::help_text::VERSION;
use crate::output::print;

/// A shell whose completions we generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShellArg {
    Bash,
    Zsh,
    Fish,
}

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// Shell that reads the script.
    #[arg(value_enum)]
    shell: ShellArg,
}

/// Runs the command. `command` is the whole command line.
pub(crate) fn run(command: &clap::Command, args: &CompletionsArgs) -> Result<Exit, Failure> {
    let shell = match args.shell {
        ShellArg::Bash => Shell::Bash,
        ShellArg::Zsh => Shell::Zsh,
        ShellArg::Fish => Shell::Fish,
    };
    let mut command = without_hidden(command);
    // The generator panics if it can't write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "trunkline", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Good)
}

/// The same command line without hidden commands, which the generators would offer.
fn without_hidden(command: &clap::Command) -> clap::Command {
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    clap::Command::new("trunkline")
        .version(VERSION)
        .disable_help_flag(true)
        .args(command.get_arguments())
        .subcommands(shown)
}
