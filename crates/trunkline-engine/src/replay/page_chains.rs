//! **Page chains**: for each page that the log changes, the records that rebuild it.
//!
//! ```text
//!   image │ change │ change │ image │ change │ change     records of one page, in order
//!                             ╰────── its chain ──────╯   earlier records are dropped
//! ```
//! A chain begins with the last record that needs no base page. If there is none, the page in the file
//! is the base. With `full_page_writes`, every chain of a crashed cluster begins with an image or an
//! initialisation, so a torn page is never used as a base.
//!
//! If the log creates, truncates or removes a file, the chains past its new end are dropped, and the
//! file's contents there are void: a crashed directory may still have the old bytes.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use trunkline_aio::facade::hash::Map;
use trunkline_format::visibility_map::BLOCKS_PER_PAGE;
use trunkline_format::wal::{RelFileLocator, Truncation};
use trunkline_format::{BlockNo, Fork};

use super::chain_link::ChainLink;
use super::fork_changes::{Chain, DROPPED, ForkChanges};
use super::spilled_links::SpilledLinks;

/// One fork of a relation.
pub type ForkKey = (RelFileLocator, Fork);

/// The memory of a fork's entry.
const FORK_BYTES: u64 = 192;

/// The memory of the entry of a removed relation, in a tree whose nodes are half full.
const REMOVED_BYTES: u64 = 24;

/// How many forks the lookup remembers. Its own hash is that of any key, and takes as long as the rest of the step.
const RECENT: usize = 32;

/// The chains of all pages.
#[derive(Debug, Default)]
pub(super) struct PageChains {
    forks: Forks,
    /// The tablespaces and databases whose files the log has removed, also those that it doesn't name. If the
    /// database is created again, the log has each new file. Not so with `STRATEGY FILE_COPY`, which the scan refuses
    /// after a removal.
    dropped: BTreeSet<(u32, u32)>,
    /// Relations that the log has removed. One of which it says nothing else has no entry in `forks`.
    removed: BTreeSet<RelFileLocator>,
    bytes: u64,
    /// The scratch file, once it was needed.
    spilled: Option<SpilledLinks>,
}

impl PageChains {
    /// The memory that the chains take, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bytes of the scratch file.
    pub(super) fn spilled_bytes(&self) -> u64 {
        self.spilled.as_ref().map_or(0, SpilledLinks::bytes)
    }

    /// Writes all links to a scratch file in `folder` and forgets them. What stays in memory is an
    /// entry for each page.
    pub(super) fn spill(&mut self, folder: &Path) -> io::Result<()> {
        let mut file = match self.spilled.take() {
            Some(file) => file,
            None => SpilledLinks::create(folder)?,
        };
        let chains = self.forks.changes_mut().flat_map(ForkChanges::chains_mut);
        let parts = chains.filter(|chain| !chain.links.is_empty());
        file.write(parts.map(|chain| (&mut chain.spilled, &*chain.links)))?;
        self.spilled = Some(file);
        for chain in self.forks.changes_mut().flat_map(ForkChanges::chains_mut) {
            self.bytes = self.bytes.saturating_sub(chain.link_bytes());
            chain.links = Vec::new();
        }
        Ok(())
    }

    /// All links of a chain, oldest first.
    pub(super) fn links<'c>(&self, chain: &'c Chain) -> io::Result<Cow<'c, [ChainLink]>> {
        let (Some(last), Some(file)) = (chain.spilled, &self.spilled) else {
            return Ok(Cow::Borrowed(&chain.links));
        };
        let mut links = file.read(last)?;
        links.extend(&chain.links);
        Ok(Cow::Owned(links))
    }

    /// The number of pages that have a chain, and of their records in memory.
    pub(super) fn counts(&self) -> (u64, u64) {
        let forks = || self.forks.list.iter().map(|(_, fork)| fork);
        let links = forks().flat_map(ForkChanges::chains).map(|chain| chain.links.len() as u64);
        (forks().map(|fork| fork.page_count() as u64).sum(), links.sum())
    }

    /// Adds a record to the chain of a page. If it makes the page from scratch, earlier records are
    /// forgotten.
    pub(super) fn add(
        &mut self,
        key: ForkKey,
        block: BlockNo,
        link: ChainLink,
        is_from_scratch: bool,
    ) {
        let added = self.fork_mut(key).add(block, link, is_from_scratch);
        self.bytes = self.bytes.saturating_add_signed(added);
    }

    /// A fork was created.
    pub(super) fn create(&mut self, key: ForkKey) {
        self.fork_mut(key).set_exists(true);
    }

    /// A relation was cut off. Bits of the last map page that stays are cleared by the record itself, as a
    /// page that it changes without naming it, if there is one.
    pub(super) fn truncate(&mut self, truncation: &Truncation) {
        if truncation.main {
            // A server creates the file if it is missing, but not that of a map.
            self.create((truncation.relation, Fork::Main));
        }
        cuts(truncation).for_each(|(key, length)| self.cut(key, length));
    }

    fn cut(&mut self, key: ForkKey, length: BlockNo) {
        let freed = self.fork_mut(key).cut(length);
        self.bytes = self.bytes.saturating_sub(freed);
    }

    /// A relation was removed, with all its forks.
    pub(super) fn remove(&mut self, relation: RelFileLocator) {
        if self.removed.insert(relation) {
            self.bytes += REMOVED_BYTES;
        }
        for key in Fork::ALL.map(|fork| (relation, fork)) {
            if let Some(fork) = self.forks.get_mut(&key) {
                self.bytes = self.bytes.saturating_sub(fork.cut(0));
                fork.set_exists(false);
            }
        }
    }

    /// All relations of a database in a tablespace were removed, also those that the log doesn't name.
    pub(super) fn remove_database(&mut self, tablespace: u32, database: u32) {
        self.dropped.insert((tablespace, database));
        let is_of_it = |relation: &RelFileLocator| {
            relation.tablespace.0 == tablespace && relation.database.0 == database
        };
        let mut relations: Vec<RelFileLocator> =
            self.forks().map(|(relation, _)| *relation).filter(is_of_it).collect();
        relations.sort_unstable();
        relations.dedup();
        for relation in relations {
            self.remove(relation);
        }
    }

    /// Relations that the log has removed.
    pub(super) fn removed(&self) -> impl Iterator<Item = &RelFileLocator> {
        self.removed.iter()
    }

    /// All forks about which the log says anything but that their relation was removed.
    pub(super) fn forks(&self) -> impl Iterator<Item = &ForkKey> {
        self.forks.list.iter().map(|(key, _)| key)
    }

    /// What the log says about a fork, if anything.
    pub(super) fn fork(&self, key: &ForkKey) -> Option<&ForkChanges> {
        self.forks.get(key).or_else(|| self.is_gone(&key.0).then_some(&DROPPED))
    }

    /// Whether the log has removed the relation, or its database.
    fn is_gone(&self, relation: &RelFileLocator) -> bool {
        self.removed.contains(relation) || is_of(&self.dropped, relation)
    }

    fn fork_mut(&mut self, key: ForkKey) -> &mut ForkChanges {
        let Self { forks, dropped, removed, bytes, .. } = self;
        forks.get_or_add(key, || {
            *bytes += FORK_BYTES;
            match removed.contains(&key.0) || is_of(dropped, &key.0) {
                true => ForkChanges::of_dropped(),
                false => ForkChanges::default(),
            }
        })
    }
}

/// Forks by key.
#[derive(Debug, Default)]
struct Forks {
    list: Vec<(ForkKey, ForkChanges)>,
    /// Where each key is in the list.
    places: Map<ForkKey, usize>,
    /// Where keys are that were looked up last, by a few bits of them.
    recent: [usize; RECENT],
}

impl Forks {
    fn get(&self, key: &ForkKey) -> Option<&ForkChanges> {
        self.list.get(*self.places.get(key)?).map(|(_, fork)| fork)
    }

    fn get_mut(&mut self, key: &ForkKey) -> Option<&mut ForkChanges> {
        self.list.get_mut(*self.places.get(key)?).map(|(_, fork)| fork)
    }

    fn changes_mut(&mut self) -> impl Iterator<Item = &mut ForkChanges> {
        self.list.iter_mut().map(|(_, fork)| fork)
    }

    /// The fork, which is added if it is not there.
    fn get_or_add(&mut self, key: ForkKey, new: impl FnOnce() -> ForkChanges) -> &mut ForkChanges {
        let bits = key.0.number as usize + 7 * key.1 as usize;
        let recent = &mut self.recent[bits % RECENT];
        if self.list.get(*recent).is_none_or(|(found, _)| *found != key) {
            *recent = *self.places.entry(key).or_insert_with(|| {
                self.list.push((key, new()));
                self.list.len() - 1
            });
        }
        &mut self.list[*recent].1
    }
}

fn is_of(databases: &BTreeSet<(u32, u32)>, relation: &RelFileLocator) -> bool {
    databases.contains(&(relation.tablespace.0, relation.database.0))
}

/// The forks that a truncation cuts off, and their lengths after it. The free space map is never read.
pub(super) fn cuts(truncation: &Truncation) -> impl Iterator<Item = (ForkKey, BlockNo)> + use<> {
    let Truncation { relation, blocks, main, visibility_map, .. } = *truncation;
    let main = main.then_some(((relation, Fork::Main), blocks));
    let map = visibility_map.then(|| ((relation, Fork::Vm), blocks.div_ceil(BLOCKS_PER_PAGE)));
    main.into_iter().chain(map)
}

#[cfg(test)]
mod tests {
    use super::super::chain_link::Part;
    use super::*;
    use trunkline_format::{Lsn, Oid};

    const RELATION: RelFileLocator =
        RelFileLocator { tablespace: Oid(1663), database: Oid(5), number: 16384 };
    const MAIN: ForkKey = (RELATION, Fork::Main);

    fn link(record: u64) -> ChainLink {
        ChainLink { record: Lsn(record), part: Part::Block(0) }
    }

    fn truncation(blocks: BlockNo) -> Truncation {
        let (main, visibility_map, free_space_map) = (true, true, true);
        Truncation { relation: RELATION, blocks, main, visibility_map, free_space_map }
    }

    fn records(chains: &PageChains, block: BlockNo) -> Vec<u64> {
        let chain = chains.fork(&MAIN).and_then(|fork| fork.chain(block));
        chain.map_or(vec![], |chain| chain.links.iter().map(|link| link.record.0).collect())
    }

    #[test]
    fn a_chain_begins_with_the_last_image() {
        let mut chains = PageChains::default();
        for (record, is_image) in [(8, false), (16, true), (24, false), (32, true), (40, false)] {
            chains.add(MAIN, 3, link(record), is_image);
            let scratch =
                chains.fork(&MAIN).and_then(|it| it.chain(3)).expect("it").is_from_scratch;
            assert_eq!(scratch, record >= 16);
        }
        assert_eq!(records(&chains, 3), [32, 40]);
        assert_eq!(chains.counts(), (1, 2));
        let fork = chains.fork(&MAIN).expect("it");
        assert_eq!(
            (fork.length(None), fork.length(Some(2)), fork.length(Some(9))),
            (Some(4), Some(4), Some(9))
        );
        assert_eq!((fork.next_changed(0), fork.next_changed(4)), (Some(3), None));
    }

    #[test]
    fn what_was_cut_off_is_void_even_if_it_is_used_again() {
        let mut chains = PageChains::default();
        for block in 0..10 {
            chains.add(MAIN, block, link(8), true);
        }
        let before = chains.bytes();
        chains.truncate(&truncation(4));
        assert!(chains.bytes() < before);
        let fork = chains.fork(&MAIN).expect("it");
        assert_eq!(fork.length(Some(50)), Some(4));
        assert!(!fork.is_void(3) && fork.is_void(4));
        chains.truncate(&truncation(20));
        chains.add(MAIN, 30, link(32), true);
        let fork = chains.fork(&MAIN).expect("it");
        // Extended to 20 blocks without a record, then to 31.
        assert_eq!(fork.length(Some(50)), Some(31));
        assert!(fork.is_void(4), "the file may still have what was there before");
        assert_eq!(fork.next_changed(4), Some(4));
        let map = chains.fork(&(RELATION, Fork::Vm)).expect("the map");
        assert_eq!((map.length(Some(3)), map.next_changed(0)), (Some(1), Some(1)));
    }

    #[test]
    fn spilled_chains_are_those_that_were_kept_in_memory() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut kept, mut spilled) = (PageChains::default(), PageChains::default());
        let mut rng = trunkline_aio::facade::random::Rng::new(15);
        let (mut least, mut most) = (u64::MAX, 0);
        for record in (8..).step_by(8).take(20_000) {
            let block = rng.below(300) as BlockNo;
            let parts = [Part::Block(3), Part::DerivedMap, Part::TruncatedMap];
            let (is_image, part) = (rng.below(40) == 0, parts[rng.below(3) as usize]);
            let link = ChainLink { record: Lsn(record), part };
            let cut = (rng.below(2_000) == 0).then(|| truncation(rng.below(300) as BlockNo));
            for chains in [&mut kept, &mut spilled] {
                chains.add(MAIN, block, link, is_image);
                if let Some(cut) = &cut {
                    chains.truncate(cut);
                }
            }
            most = most.max(kept.bytes());
            if spilled.bytes() > 50_000 {
                spilled.spill(folder.path()).expect("written");
                least = least.min(spilled.bytes());
            }
        }
        assert!(spilled.bytes() <= 50_000);
        assert!(least < 40_000 && most > 100_000, "{least}, {most}");
        assert!(spilled.spilled_bytes() > 100_000, "{}", spilled.spilled_bytes());
        for key in [MAIN, (RELATION, Fork::Vm)] {
            let (kept_fork, fork) = (kept.fork(&key).expect("it"), spilled.fork(&key).expect("it"));
            assert_eq!(kept_fork.length(Some(9)), fork.length(Some(9)));
            for block in 0..300 {
                let chains = (kept_fork.chain(block), fork.chain(block));
                let (Some(expected), Some(found)) = chains else {
                    assert_eq!(chains.0.is_some(), chains.1.is_some(), "{block}");
                    continue;
                };
                assert_eq!(expected.is_from_scratch, found.is_from_scratch, "{block}");
                assert_eq!(*kept.links(expected).expect("it"), *spilled.links(found).expect("it"));
            }
        }
        let names = std::fs::read_dir(folder.path()).expect("read").count();
        assert_eq!(names, 0, "the file has no name");
    }

    #[test]
    fn a_block_that_a_relation_cannot_have_does_not_make_it_longer() {
        let mut chains = PageChains::default();
        (0..10).for_each(|block| chains.add(MAIN, block, link(8), true));
        let of = |chains: &PageChains, in_file| {
            let fork = chains.fork(&MAIN).expect("it");
            (fork.length(in_file), fork.impossible(in_file))
        };
        // A server adds blocks in advance, and a hash index doubles.
        chains.add(MAIN, 100_000, link(16), true);
        assert_eq!(of(&chains, Some(5)), (Some(100_001), None));
        chains.add(MAIN, 4_000_000_000, link(24), true);
        let impossible = Some(4_000_000_000);
        assert_eq!(of(&chains, Some(5)), (Some(100_001), impossible));
        assert_eq!(of(&chains, None), (Some(100_001), impossible));
        assert_eq!(of(&chains, Some(3_000_000_000)), (Some(4_000_000_001), None));
        chains.add(MAIN, BlockNo::MAX, link(32), true);
        assert_eq!(of(&chains, Some(5)), (Some(100_001), impossible));
        // Gaps are limited together, however small the steps are.
        let mut chains = PageChains::default();
        (1..1000).for_each(|step| chains.add(MAIN, step * 100_000, link(8), true));
        assert_eq!(of(&chains, None).0, Some(100_001));
        chains.truncate(&truncation(4_000_000_000));
        assert_eq!(of(&chains, Some(50)).0, Some(100_001));
    }

    #[test]
    fn a_number_can_be_used_again_after_a_drop() {
        let mut chains = PageChains::default();
        chains.add(MAIN, 7, link(8), true);
        chains.remove(RELATION);
        let fork = chains.fork(&MAIN).expect("it");
        assert_eq!(fork.exists(), Some(false));
        assert_eq!(fork.length(Some(8)), None);
        chains.create(MAIN);
        let fork = chains.fork(&MAIN).expect("it");
        assert_eq!((fork.length(Some(8)), fork.is_void(0)), (Some(0), true));
        chains.add(MAIN, 0, link(32), true);
        assert_eq!(chains.fork(&MAIN).expect("it").length(Some(8)), Some(1));
        chains.remove_database(1663, 6);
        assert_eq!(chains.fork(&MAIN).expect("it").exists(), Some(true));
        chains.remove_database(1663, 5);
        assert_eq!(chains.fork(&MAIN).expect("it").exists(), Some(false));
    }

    #[test]
    fn a_removed_relation_takes_little_memory() {
        let mut chains = PageChains::default();
        for number in 0..10_000 {
            chains.remove(RelFileLocator { number, ..RELATION });
        }
        chains.remove(RelFileLocator { number: 1, ..RELATION });
        assert_eq!((chains.bytes(), chains.forks().count()), (240_000, 0));
        assert_eq!(chains.removed().count(), 10_000);
        let removed = (RelFileLocator { number: 7, ..RELATION }, Fork::Vm);
        let fork = chains.fork(&removed).expect("removed");
        assert_eq!((fork.exists(), fork.length(Some(8))), (Some(false), None));
        chains.create(removed);
        chains.add(removed, 1, link(8), true);
        let fork = chains.fork(&removed).expect("created again");
        assert_eq!((fork.length(Some(8)), fork.is_void(0)), (Some(2), true));
    }

    #[test]
    fn a_truncation_adds_neither_a_map_nor_a_page_to_it() {
        let mut chains = PageChains::default();
        let map = (RELATION, Fork::Vm);
        let of = |chains: &PageChains, in_file| chains.fork(&map).expect("it").length(in_file);
        chains.add(map, 2, ChainLink { record: Lsn(8), part: Part::TruncatedMap }, false);
        assert_eq!((of(&chains, None), of(&chains, Some(1))), (None, Some(1)));
        assert_eq!(of(&chains, Some(3)), Some(3));
        assert!(chains.fork(&map).expect("it").chain(2).is_some(), "the page of the file changes");
        chains.add(map, 2, link(16), false);
        assert_eq!((of(&chains, None), of(&chains, Some(1))), (Some(3), Some(3)));
    }

    #[test]
    fn a_dropped_database_has_none_of_the_files_that_the_log_does_not_name() {
        let mut chains = PageChains::default();
        assert!(chains.fork(&MAIN).is_none());
        chains.remove_database(1663, 5);
        let fork = chains.fork(&MAIN).expect("removed");
        assert_eq!((fork.length(Some(8)), fork.is_void(0)), (None, true));
        assert_eq!(chains.forks().count(), 0);
        for (tablespace, database) in [(1663, 6), (1664, 5)] {
            let other = RelFileLocator { database: Oid(database), ..RELATION };
            let other = RelFileLocator { tablespace: Oid(tablespace), ..other };
            assert!(chains.fork(&(other, Fork::Main)).is_none());
        }
        // The database is created again, with the same number.
        chains.create(MAIN);
        chains.add(MAIN, 1, link(8), true);
        let fork = chains.fork(&MAIN).expect("created");
        assert_eq!((fork.length(Some(8)), fork.next_changed(0)), (Some(2), Some(0)));
        assert!(chains.fork(&(RELATION, Fork::Vm)).expect("removed").length(Some(1)).is_none());
    }
}
