//! The scope of a page verification: all files, one database's files, or some relations' files.
//!
//! Problems with files outside the scope are not reported.

use trunkline_format::{Fork, Oid};

use crate::catalog::{RelationPath, first_file};
use crate::datadir::{DataDir, FileEntry, FileList, Problem, ProblemKind};
use crate::storage::RelationLocator;

/// The relation files to verify.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Scope {
    /// Every file of every database and tablespace.
    #[default]
    Everything,
    /// The files of a database, without shared relations.
    Database(Oid),
    /// The files of these relations.
    Relations(Vec<RelationLocator>),
}

impl Scope {
    /// Removes everything outside the scope from `list`, the listing of `dir`. If the first segment
    /// of a relation in the scope is missing, adds a problem, because otherwise the report wouldn't
    /// mention that we couldn't check the relation.
    pub(super) fn narrow(&self, dir: &DataDir, list: &mut FileList) {
        if *self == Self::Everything {
            return;
        }
        list.files.retain(|file| self.has_relation(locator_of(file)));
        list.problems.retain(|problem| self.has_problem(dir, problem));
        let Self::Relations(relations) = self else { return };
        for &relation in relations {
            let is_main = |file: &FileEntry| file.fork == Fork::Main && file.segment == 0;
            let there = list.files.iter().any(|file| is_main(file) && locator_of(file) == relation);
            let path = first_file(dir, relation);
            if !there && !list.problems.iter().any(|problem| problem.path == path) {
                list.problems.push(Problem { path, kind: ProblemKind::Missing });
            }
        }
    }

    /// Whether the catalogs of a database may describe a relation within the scope.
    pub(super) fn has_database(&self, database: Oid) -> bool {
        match self {
            Self::Everything => true,
            Self::Database(wanted) => *wanted == database,
            // Shared relations are described in every database.
            Self::Relations(relations) => {
                let mut databases = relations.iter().map(|relation| relation.database);
                databases.any(|wanted| wanted == database || wanted == Oid(0))
            }
        }
    }

    /// Whether a relation is within the scope.
    pub(super) fn has_relation(&self, relation: RelationLocator) -> bool {
        match self {
            Self::Everything => true,
            Self::Database(database) => relation.database == *database,
            Self::Relations(relations) => relations.contains(&relation),
        }
    }

    /// Whether a problem concerns a file within the scope. A problem with a directory concerns all
    /// files in that directory.
    fn has_problem(&self, dir: &DataDir, problem: &Problem) -> bool {
        let Some(place) = RelationPath::of(dir, &problem.path) else { return false };
        let is_above = |tablespace: Oid, database: Oid| {
            place.relfilenode.is_none()
                && place.tablespace == tablespace
                && place.database.is_none_or(|found| found == database)
        };
        match (self, place.locator()) {
            (Self::Everything, _) => true,
            (_, Some(locator)) => self.has_relation(locator),
            (Self::Database(database), None) => {
                place.database.is_none_or(|found| found == *database)
            }
            (Self::Relations(relations), None) => {
                relations.iter().any(|relation| is_above(relation.tablespace, relation.database))
            }
        }
    }
}

/// The relation that a file belongs to.
pub(super) fn locator_of(file: &FileEntry) -> RelationLocator {
    let FileEntry { tablespace, database, relfilenode, .. } = *file;
    RelationLocator { tablespace, database, relfilenode }
}
