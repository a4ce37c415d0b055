//! Pages of a target that can't be built from the log.
//!
//! An index may have thousands of them, for one reason. So they are counted by reason, and only the first of
//! each is described.

use std::mem::{Discriminant, discriminant};
use std::path::PathBuf;

use trunkline_format::BlockNo;
use trunkline_format::segment::segment_of;

use super::report::{Failures, Unchecked};
use crate::replay::PageRedoError;
use crate::storage::Relation;

/// Pages with one kind of reason.
struct Group {
    kind: Discriminant<PageRedoError>,
    /// Whether we have no rule for the record, although nothing is known to be wrong.
    lacks_rule: bool,
    /// The segment file of the first page.
    path: PathBuf,
    /// The first page and its reason.
    text: String,
    pages: u64,
}

/// The pages of one target that can't be built.
#[derive(Default)]
pub(super) struct UnbuiltPages {
    groups: Vec<Group>,
}

impl UnbuiltPages {
    /// Adds a page.
    pub(super) fn add(&mut self, relation: &Relation, block: BlockNo, reason: &PageRedoError) {
        let (kind, lacks_rule) = (discriminant(reason), reason.lacks_rule());
        let mut known = self.groups.iter_mut();
        match known.find(|group| group.kind == kind && group.lacks_rule == lacks_rule) {
            Some(group) => group.pages += 1,
            None => {
                let path = relation.path(segment_of(block).0);
                let text = format!("block {block}: {reason}");
                self.groups.push(Group { kind, lacks_rule, path, text, pages: 1 });
            }
        }
    }

    /// Reports all of them: as failures, unless we only lack a rule.
    pub(super) fn report(self, failures: &mut Failures, unchecked: &mut Unchecked) {
        for Group { lacks_rule, path, text, pages, .. } in self.groups {
            let text = with_others(text, pages - 1);
            match lacks_rule {
                true => unchecked.add(&path, text, pages),
                false => failures.add_all(&path, text, pages),
            }
        }
    }
}

fn with_others(text: String, others: u64) -> String {
    match others {
        0 => text,
        1 => format!("{text}; and 1 more block like this"),
        others => format!("{text}; and {others} more blocks like this"),
    }
}
