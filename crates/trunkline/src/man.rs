//! `trunkline man`: manual pages, generated from the help texts.
//!
//! ```text
//!   trunkline man | man -l -              read the page of the program
//!   trunkline man /usr/share/man/man1     install it, with a page for each command
//! ```

use std::path::PathBuf;

use clap_mangen::Man;

use crate::exit::{Exit, Failure};
use crate::output::print;

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Directory for trunkline.1, trunkline-copy.1 and so on; existing pages are replaced [default:
    /// print trunkline.1].
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Runs the command. `command` is the whole command line.
pub(crate) fn run(command: clap::Command, args: &ManArgs) -> Result<Exit, Failure> {
    if let Some(directory) = &args.directory {
        clap_mangen::generate_to(command, directory).map_err(|error| {
            let directory = directory.display();
            Failure::cannot_run(format!("could not write manual pages to \"{directory}\": {error}"))
        })?;
        return Ok(Exit::Good);
    }
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(Failure::cannot_run)?;
    print(&String::from_utf8_lossy(&page))?;
    Ok(Exit::Good)
}
