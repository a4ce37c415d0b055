//! `trunkline completions`: a script for a shell, generated from the definitions of the options.
//!
//! ```text
//!   source <(trunkline completions bash)
//! ```

use clap::ValueEnum;
use clap_complete::Shell;

use crate::exit::{Exit, Failure};
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
pub(crate) fn run(mut command: clap::Command, args: &CompletionsArgs) -> Result<Exit, Failure> {
    let shell = match args.shell {
        ShellArg::Bash => Shell::Bash,
        ShellArg::Zsh => Shell::Zsh,
        ShellArg::Fish => Shell::Fish,
    };
    // The generator panics if it can't write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "trunkline", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Good)
}
