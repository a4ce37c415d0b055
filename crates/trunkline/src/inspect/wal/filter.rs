//! Which records are printed: those that match all options.

use trunkline_format::wal::{LogRecord, RelFileLocator, ResourceManager};

/// The conditions; an absent one matches every record.
pub(super) struct Filter {
    pub(super) relation: Option<RelFileLocator>,
    pub(super) xid: Option<u32>,
    /// Any of these.
    pub(super) managers: Vec<ResourceManager>,
}

impl Filter {
    pub(super) fn matches(&self, found: &LogRecord<'_>) -> bool {
        let header = found.record.header();
        let manager = ResourceManager(header.manager);
        (self.managers.is_empty() || self.managers.contains(&manager))
            && self.xid.is_none_or(|xid| xid == header.xid)
            && self.relation.is_none_or(|relation| {
                found.record.blocks().iter().any(|block| block.relation == relation)
            })
    }
}
