//! **Where a page comes from**: from its file, or from the log of a cluster that was not shut down.

use std::fmt;

use serde::Serialize;
use trunkline_engine::storage::PageOrigin;
use trunkline_format::{Lsn, PageBytes};

use super::address::PageAddress;
use super::place::Place;
use crate::exit::{Failure, plain};
use crate::options::Context;
use crate::output::object;

/// Where a page comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// From the file. Nothing is replayed.
    File,
    /// From the file, since the log doesn't change the page.
    Unchanged {
        /// The end of the log.
        end: Lsn,
        /// The page can't be of this cluster.
        finding: Option<String>,
    },
    /// From the log.
    Log {
        /// The end of the log.
        end: Lsn,
        /// The records that it was built from: how many, the first one and the last one. `None` if no
        /// record names the page, which is then empty.
        records: Option<(usize, Lsn, Lsn)>,
        /// Whether they were applied to the page of the file.
        requires_base: bool,
    },
}

/// Reads the page at an address, or builds it from the log. The address becomes that of the file which
/// has the page, such as the `_init` fork of an unlogged relation.
pub(super) fn read(
    context: &Context<'_>,
    place: Option<&Place>,
    address: &mut PageAddress,
) -> Result<(Box<PageBytes>, Source), Failure> {
    let replay = place.and_then(|place| Some((place, place.dir.as_ref()?.replay()?)));
    let Some((place, replay)) = replay else { return Ok((address.read()?, Source::File)) };
    let end = replay.report().end;
    match place.origin(context, address.block)? {
        None => Ok((address.read()?, Source::File)),
        Some(PageOrigin::File { path }) => {
            address.path = path;
            let page = address.read()?;
            let finding = replay.check_position(&page).err().map(plain);
            Ok((page, Source::Unchanged { end, finding }))
        }
        Some(PageOrigin::Log { path, page, records }) => {
            address.path = path;
            let places = &records.places;
            let ends = places.first().zip(places.last());
            let source = Source::Log {
                end,
                records: ends.map(|(first, last)| (places.len(), *first, *last)),
                requires_base: records.requires_base,
            };
            Ok((page, source))
        }
    }
}

impl Source {
    /// What is wrong with the page, whatever its contents.
    pub(super) fn finding(&self) -> Option<String> {
        match self {
            Source::Unchanged { finding, .. } => finding.clone(),
            _ => None,
        }
    }

    /// `from` is `file` or `log`. `end` is there if a log was replayed, and all else if it has the page.
    pub(super) fn json(&self) -> impl Serialize {
        let (from, end, log) = match self {
            Source::File => ("file", None, None),
            Source::Unchanged { end, .. } => ("file", Some(end), None),
            Source::Log { end, records, requires_base } => {
                ("log", Some(end), Some((records, requires_base)))
            }
        };
        object! {
            from: from,
            #[serde(flatten)]
            end: end.map(|end| object! { end: end.to_string() }),
            #[serde(flatten)]
            log: log.map(|(records, requires_base)| object! {
                records: records.map_or(0, |(count, ..)| count),
                #[serde(flatten)]
                range: records.map(|(_, first, last)| object! {
                    first: first.to_string(),
                    last: last.to_string(),
                }),
                requires_file: requires_base,
            }),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File => f.write_str("file"),
            Source::Unchanged { end, .. } => {
                write!(f, "file; the log, which ends at {end}, does not change the page")
            }
            Source::Log { end, records: None, .. } => {
                write!(
                    f,
                    "empty: the relation has it at the end of the log, {end}, without a record"
                )
            }
            Source::Log { end, records: Some((count, first, last)), requires_base } => {
                let plural = if *count == 1 { "" } else { "s" };
                write!(f, "built from {count} record{plural} of the log up to {end}")?;
                let base = if *requires_base { " applied to the page of the file" } else { "" };
                match count {
                    1 => write!(f, ": {first}{base}"),
                    _ => write!(f, ": {first} to {last}{base}"),
                }
            }
        }
    }
}
