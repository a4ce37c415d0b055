//! Names of relations, as far as the catalogs can be read.

use std::ffi::OsString;

use trunkline_engine::datadir::DataDir;
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::RelationLocator;
use trunkline_format::Oid;
use trunkline_format::wal::{RelFileLocator, RelationNames as LogNames};

use crate::data_dir;
use crate::exit::{Exit, Failure, message};
use crate::inspect::open_database::OpenDatabase;
use crate::named_files::RelationNames;
use crate::options::{Context, DatabaseArgs};

/// `pg_default`.
const DEFAULT_TABLESPACE: u32 = 1663;

/// Looks up names, or knows none.
pub(in crate::inspect) struct Names(Option<RelationNames>);

impl Names {
    /// The names in the data directory, if its catalogs can be read. `dir` is the directory if it is open
    /// already.
    pub(super) fn open(context: &Context<'_>, dir: Option<DataDir>) -> Result<Names, Failure> {
        let dir = dir.map_or_else(|| data_dir::open_for_names(context), Ok);
        match dir {
            Ok(dir) => Ok(Names::of(&dir, &context.settings)),
            Err(failure) if failure.exit == Exit::Usage => Err(failure),
            Err(failure) => {
                message("note", format_args!("relations are shown as numbers: {failure}"));
                Ok(Names(None))
            }
        }
    }

    /// The names in a data directory that is open, if its catalogs can be read.
    pub(in crate::inspect) fn of(dir: &DataDir, settings: &Settings) -> Names {
        Names(RelationNames::open(dir, settings))
    }

    /// No names.
    pub(in crate::inspect) fn unknown() -> Names {
        Names(None)
    }
}

impl LogNames for Names {
    fn name(&mut self, relation: RelFileLocator) -> Option<String> {
        let names = self.0.as_mut()?;
        let RelFileLocator { tablespace, database, number } = relation;
        let locator = RelationLocator { tablespace, database, relfilenode: number };
        names.of_locator(locator).map(|name| name.to_string())
    }
}

/// The file numbers of the relation that the user wants to see, and the data directory if it had to be
/// opened for that.
pub(super) fn locate(
    context: &Context<'_>,
    database: &DatabaseArgs,
    relation: &OsString,
) -> Result<(RelFileLocator, Option<DataDir>), Failure> {
    if let Some(locator) = relation.to_str().and_then(parse_numbers) {
        return Ok((locator, None));
    }
    let open = OpenDatabase::open_with(context, database, relation, data_dir::open_for_names)?;
    let info = open.relation(relation)?;
    let locator = info.locator;
    let locator = locator.ok_or_else(|| Failure::usage("the relation has no files"))?;
    let RelationLocator { tablespace, database, relfilenode } = locator;
    Ok((RelFileLocator { tablespace, database, number: relfilenode }, Some(open.dir)))
}

/// Parses `5/16384` or `1663/5/16384`.
fn parse_numbers(text: &str) -> Option<RelFileLocator> {
    let numbers: Option<Vec<u32>> = text.split('/').map(|part| part.parse().ok()).collect();
    let (tablespace, database, number) = match numbers?[..] {
        [database, number] => (DEFAULT_TABLESPACE, database, number),
        [tablespace, database, number] => (tablespace, database, number),
        _ => return None,
    };
    Some(RelFileLocator { tablespace: Oid(tablespace), database: Oid(database), number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed_with_and_without_a_tablespace() {
        let shown = |text| parse_numbers(text).map(|locator| locator.to_string());
        assert_eq!(shown("5/16384").as_deref(), Some("1663/5/16384"));
        assert_eq!(shown("1664/0/1262").as_deref(), Some("1664/0/1262"));
        for text in ["16384", "a/b", "public.t", "1/2/3/4", "1//2", ""] {
            assert_eq!(shown(text), None, "{text}");
        }
    }
}
