//! `trunkline man`: manual pages, generated from the help texts.
//!
//! ```text
//!   trunkline man | man -l -              read the page of the program
//!   trunkline man /usr/share/man/man1     install it, with a page for each command
//! ```
//! The pages have the sections of PostgreSQL's pages. clap_mangen renders the options and the
//! description. We write the other sections ourselves: it has no environment or exit status, its
//! name section takes a whole paragraph, and it joins the lines of examples.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::exit::{Exit, Failure};
use crate::help_text::{ENVIRONMENT, EXAMPLES, EXIT_STATUSES, VERSION};
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
pub(crate) fn run(command: Command, args: &ManArgs) -> Result<Exit, Failure> {
    // There is no page for the command `help`.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let Some(directory) = &args.directory else {
        let page = page(&command).map_err(Failure::cannot_run)?;
        print(&String::from_utf8_lossy(&page))?;
        return Ok(Exit::Good);
    };
    write_pages(&command, directory).map_err(|error| {
        let directory = directory.display();
        Failure::cannot_run(format!("could not write manual pages to \"{directory}\": {error}"))
    })?;
    Ok(Exit::Good)
}

/// Writes the pages of a command and of its subcommands.
fn write_pages(command: &Command, directory: &Path) -> io::Result<()> {
    fs::write(directory.join(format!("{}.1", page_name(command))), page(command)?)?;
    shown_subcommands(command).try_for_each(|sub| write_pages(sub, directory))
}

fn shown_subcommands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set())
}

/// The name of a page, such as `trunkline-copy`.
fn page_name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The command as it is typed, such as `trunkline copy`.
fn typed_name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

/// The manual page of a command, in roff.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let name = page_name(command);
    let man = Man::new(command.clone());
    // clap_mangen would drop the empty date, which moves the version to its place.
    let title = name.to_uppercase();
    let title = format!(".TH {title} 1 \"\" \"trunkline {VERSION}\" \"trunkline manual\"\n");
    let mut page = title.into_bytes();
    let mut roff = Roff::new();
    write_name(&mut roff, command);
    write_synopsis(&mut roff, command);
    roff.to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    page.extend(options(&man)?);
    let mut roff = Roff::new();
    write_commands(&mut roff, command);
    write_environment(&mut roff, command);
    roff.control("SH", ["EXIT STATUS"]);
    for (status, meaning) in EXIT_STATUSES {
        write_item(&mut roff, status, meaning);
    }
    write_examples(&mut roff, command);
    if command.get_name() != name {
        roff.control("SH", ["SEE ALSO"]);
        roff.text([bold("trunkline"), roman("(1)")]);
    }
    roff.to_writer(&mut page)?;
    Ok(page)
}

/// One line, which `whatis` shows.
fn write_name(roff: &mut Roff, command: &Command) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut rest = about.chars();
    let first = rest.next().map(|first| first.to_ascii_lowercase());
    let purpose: String = first.into_iter().chain(rest).collect();
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{} - {purpose}", page_name(command)))]);
}

fn write_synopsis(roff: &mut Roff, command: &Command) {
    let name = typed_name(command);
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([bold(name), roman(usage.trim_start_matches(name))]);
}

/// All options in one section. Their groups become subsections.
fn options(man: &Man) -> io::Result<Vec<u8>> {
    let mut section = Vec::new();
    man.render_options_section(&mut section)?;
    let mut page = ".SH OPTIONS\n".to_owned();
    for line in String::from_utf8_lossy(&section).lines() {
        match line.strip_prefix(".SH ") {
            Some("OPTIONS") => continue,
            Some(group) => page += &format!(".SS {group}"),
            None => page += line,
        }
        page.push('\n');
    }
    Ok(page.into_bytes())
}

fn write_commands(roff: &mut Roff, command: &Command) {
    for (nth, sub) in shown_subcommands(command).enumerate() {
        if nth == 0 {
            roff.control("SH", ["COMMANDS"]);
        }
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        write_item(roff, &format!("{}(1)", page_name(sub)), &format!("{about}."));
    }
}

fn write_environment(roff: &mut Roff, command: &Command) {
    let read = ENVIRONMENT.iter().filter(|(option, ..)| lists_option(command, option));
    for (nth, (_, variable, meaning)) in read.enumerate() {
        if nth == 0 {
            roff.control("SH", ["ENVIRONMENT"]);
        }
        write_item(roff, variable, meaning);
    }
}

/// Whether the command or one of its subcommands has an option, and lists it.
fn lists_option(command: &Command, id: &str) -> bool {
    command.get_arguments().any(|arg| arg.get_id() == id && !arg.is_hide_set())
        || shown_subcommands(command).any(|sub| lists_option(sub, id))
}

fn write_examples(roff: &mut Roff, command: &Command) {
    let name = typed_name(command);
    let is_of_command = |line: &str| {
        line.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let examples = EXAMPLES.iter().filter(|(line, _)| is_of_command(line));
    for (nth, (line, meaning)) in examples.enumerate() {
        if nth == 0 {
            roff.control("SH", ["EXAMPLES"]);
        }
        roff.control("PP", []);
        roff.text([roman(format!("To {meaning}:"))]);
        roff.control("PP", []);
        roff.control("RS", ["4"]);
        roff.control("nf", []);
        roff.text([roman(*line)]);
        roff.control("fi", []);
        roff.control("RE", []);
    }
}

/// A term in bold with its explanation.
fn write_item(roff: &mut Roff, term: &str, text: &str) {
    roff.control("TP", []);
    roff.text([bold(term)]);
    roff.text([roman(text)]);
}
