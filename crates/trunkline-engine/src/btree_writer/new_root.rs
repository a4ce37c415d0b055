//! **How an index grows**: its metapage, its first root, and what completes a split: a new root, or a downlink in the parent.
//!
//! The metapage says whether a page was the root; the page itself doesn't. A split clears the root flag of both halves, and the metapage points to
//! the left one until there is a new root.

use trunkline_format::btree::{BtreePage, Entry, Fault, Meta};
use trunkline_format::index_tuple::{downlink, first_downlink};
use trunkline_format::page::is_new;
use trunkline_format::wal::resource_manager::btree_operation::{META_CLEANUP, NEW_ROOT};
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::{ImageMode, NewRecord};
use trunkline_format::{BlockNo, PageBytes};

use super::error::BtreeWriteError;
use super::locked_pages::{LockedPages, Part, pin};
use super::placement::Insertion;
use super::writer::BtreeWriter;
use crate::heap_writer::HeapSession;
use crate::pool::ReadError;
use crate::settings::ExtendMethod;

/// The left half of a split that isn't finished.
struct LeftHalf {
    high_key: Vec<u8>,
    right: BlockNo,
}

impl LeftHalf {
    /// `None` if the split is finished.
    fn of(page: &BtreePage<'_>) -> Result<Option<Self>, Fault> {
        if !page.is_split_incomplete() {
            return Ok(None);
        }
        let right = page.right().ok_or(Fault::Flags { found: page.flags() })?;
        Ok(Some(Self { high_key: page.item(1)?.to_vec(), right }))
    }
}

impl BtreeWriter {
    /// Writes the metapage of an empty index. Its record is that by which `VACUUM` writes a metapage, because redo then makes
    /// the whole page.
    pub(super) fn write_metapage(
        &self,
        session: &mut HeapSession<'_>,
        all_equal_image: bool,
    ) -> Result<(), BtreeWriteError> {
        let relation = self.index.relation();
        // An attempt that failed may have left an empty page.
        let pins = match relation.blocks().map_err(ReadError::from)? {
            0 => session.backend.extend(relation, 1, ExtendMethod::default())?,
            _ => pin(session, relation, &[0])?,
        };
        let mut room = session.room_for_pages(1, 0)?;
        let mut pages = LockedPages::lock(session, relation, &pins)?;
        if pages.get(0).is_none_or(|page| !is_new(page)) {
            return Err(BtreeWriteError::NotEmpty { location: relation.location(0) });
        }
        let meta = Meta::of_empty(all_equal_image).to_record();
        let operation = NewRecord::plain(number::BTREE, META_CLEANUP, session.xid, &[]);
        pages.change(session.changer, &mut room, &operation, &[meta_part(0, &[&meta])])?;
        Ok(())
    }

    /// Gives an empty index its first leaf, which is its root.
    pub(super) fn make_first_root(
        &mut self,
        session: &mut HeapSession<'_>,
    ) -> Result<(), BtreeWriteError> {
        while self.meta(session.backend)?.root == 0 {
            self.make_root(session, None)?;
        }
        Ok(())
    }

    /// Completes the split of a page, if no other session has.
    pub(super) fn finish_split(
        &mut self,
        session: &mut HeapSession<'_>,
        block: BlockNo,
        level: u32,
    ) -> Result<(), BtreeWriteError> {
        let left = self.index.read_level_page(session.backend, block, level, LeftHalf::of)?;
        let Some(LeftHalf { high_key, right }) = left else { return Ok(()) };
        if self.meta(session.backend)?.root == block {
            return self.make_root(session, Some((block, level)));
        }
        let tuple = downlink(&high_key, right);
        let entry = Entry::of_separator(1, &tuple).map_err(|fault| self.fault(block, fault))?;
        let (level, child) = (level + 1, Some(block));
        // Another session may complete it first.
        self.place(session, &Insertion { tuple: &tuple, entry, level, child, unique: None })?;
        Ok(())
    }

    /// Makes a root: the first leaf, or the page above an old root that was split. Does nothing if another session has.
    fn make_root(
        &mut self,
        session: &mut HeapSession<'_>,
        old_root: Option<(BlockNo, u32)>,
    ) -> Result<(), BtreeWriteError> {
        let (old, new) = (old_root.map(|(block, _)| block), self.new_page(session)?);
        let relation = self.index.relation().clone();
        let blocks: Vec<BlockNo> = old.into_iter().chain([0, new]).collect();
        let pins = pin(session, &relation, &blocks)?;
        let mut room = session.room_for_pages(3, 8192)?;
        let mut pages = LockedPages::lock(session, &relation, &pins)?;
        let page = |block| pages.get(block).unwrap_or(&EMPTY);
        let meta = Meta::parse(page(0)).map_err(|fault| self.fault(0, fault))?;
        if !is_new(page(new)) {
            self.spare = None;
            return Ok(());
        }
        if meta.root != old.unwrap_or(0) {
            return Ok(());
        }
        let (mut level, mut downlinks) = (0, Vec::new());
        if let Some((old, old_level)) = old_root {
            let at = |fault| self.fault(old, fault);
            let left = LeftHalf::of(&self.open(old, page(old), old_level)?).map_err(at)?;
            let Some(LeftHalf { high_key, right }) = left else { return Ok(()) };
            level = old_level + 1;
            // The last item comes first.
            downlinks = [downlink(&high_key, right), first_downlink(old).to_vec()].concat();
        }
        let meta = Meta { root: new, level, fast_root: new, fast_level: level, ..meta };
        let record = meta.to_record();
        let main: &[&[u8]] = &[&new.to_le_bytes(), &level.to_le_bytes()];
        let operation = NewRecord::plain(number::BTREE, NEW_ROOT, session.xid, main);
        let (image, data): (_, &[&[u8]]) = (ImageMode::WillInit, &[&downlinks]);
        let mut parts = vec![Part { id: 0, block: new, image, data }];
        if let Some(block) = old {
            parts.push(Part { id: 1, block, image: ImageMode::IfNeeded, data: &[] });
        }
        let meta_data: &[&[u8]] = &[&record];
        parts.push(meta_part(2, meta_data));
        pages.change(session.changer, &mut room, &operation, &parts)?;
        self.spare = None;
        Ok(())
    }
}

/// Stands for a page that isn't locked.
static EMPTY: PageBytes = [0; trunkline_format::BLOCK_SIZE];

fn meta_part<'a>(id: u8, data: &'a [&'a [u8]]) -> Part<'a> {
    Part { id, block: 0, image: ImageMode::WillInit, data }
}
