//! Leaf prediction: finds out from the pages above the leaves which leaves a scan will need.
//!
//! ```text
//!   descend once ──▶ page above the leaves: the children that may have matches ──▶ leaves
//!                     │ no more children                                            to read ahead
//!                     ├─ neighbour       the next match may be right behind this page
//!                     └─ descend again   it is further away
//! ```
//! Nothing is read beyond what a scan without look-ahead would read, until the scan asks for more
//! leaves than the first such page has.
//!
//! **Damage.** Links may lead in a circle, and a circle of inner pages need not have a single leaf. So
//! the pages that are read in search of a leaf are counted ([`Visits`]).

use std::task::{Poll, ready};

use trunkline_format::BlockNo;
use trunkline_format::btree::{
    BtreePage, Children, Cut, Direction, Fault, KeyRanges, MAX_LEVELS, Meta, Step,
};

use super::error::{BtreeError, BtreeProblem};
use super::index::Index;
use super::page_stream::PageStream;
use crate::pool::Backend;
use crate::read_stream::SourceWait;

/// What to read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The metapage.
    Meta,
    /// A page on a level above 0, on the way down.
    Descent {
        block: BlockNo,
        level: u32,
    },
    /// A page on level 1, the neighbour of page `from`.
    Neighbour {
        block: BlockNo,
        from: BlockNo,
    },
    Ended,
}

/// Predicts leaves, see the module documentation.
#[derive(Debug)]
pub(super) struct LeafPrediction {
    pages: PageStream,
    meta: Option<Meta>,
    place: Place,
    /// The page that was requested from the stream.
    requested: bool,
    /// Behind this cut are the leaves that aren't predicted yet.
    from: Cut,
    visits: Visits,
}

/// Counts visits of pages above the leaves, to recognize a circle of links.
///
/// A sound index has an upper bound for them. To find its next leaf, a scan visits each inner page at
/// most three times: in a descent, while it walks along level 1 past pages that are being deleted, and
/// in a second descent. And a scan makes at most two descents for each leaf, with a page for each level.
#[derive(Debug, Default)]
struct Visits {
    /// Since the scan began.
    all: u64,
    /// Since the last leaf was found.
    fruitless: u64,
    /// The leaves.
    leaves: u64,
}

impl Visits {
    /// Counts a page. Returns false if an index of `blocks` blocks can't have that many.
    fn count(&mut self, blocks: BlockNo) -> bool {
        self.all += 1;
        self.fruitless += 1;
        // The constant is for indexes of a few pages.
        let once = 3 * (u64::from(blocks) + 64);
        self.fruitless <= once && self.all <= once + 2 * u64::from(MAX_LEVELS) * self.leaves
    }

    fn found(&mut self, leaves: usize) {
        if leaves > 0 {
            self.fruitless = 0;
            self.leaves += leaves as u64;
        }
    }
}

impl LeafPrediction {
    /// A prediction that has ended.
    pub(super) fn new(index: &Index, backend: &Backend, from: Cut) -> Self {
        Self {
            pages: PageStream::one_by_one(backend, index.relation()),
            meta: None,
            place: Place::Ended,
            requested: false,
            from,
            visits: Visits::default(),
        }
    }

    /// Starts at a cut. The metapage is read only once.
    pub(super) fn start(&mut self, from: Cut) {
        if std::mem::take(&mut self.requested) {
            self.pages.clear();
        }
        self.place = self.top();
        self.from = from;
        self.visits = Visits::default();
    }

    /// Where a descent begins: at the fast root, in order to skip upper levels that have only one page.
    fn top(&self) -> Place {
        match self.meta {
            None => Place::Meta,
            Some(Meta { fast_root: 0, .. }) => Place::Ended,
            Some(meta) => Place::Descent { block: meta.fast_root, level: meta.fast_level },
        }
    }

    /// The metapage, if it has been read.
    pub(super) fn meta(&self) -> Option<Meta> {
        self.meta
    }

    /// Whether all leaves have been predicted.
    pub(super) fn has_ended(&self) -> bool {
        self.place == Place::Ended
    }

    /// Releases all pins.
    pub(super) fn release_ahead(&mut self) {
        self.pages.release_ahead();
    }

    /// The stream of pages above the leaves, for its counts.
    pub(super) fn pages(&self) -> &PageStream {
        &self.pages
    }

    /// Goes on until there are more leaves, and passes them to `predicted`, or until it has to wait.
    /// `index_blocks` is the length of the index.
    ///
    /// # Errors
    /// See [`BtreeError`]. Apart from a cancellation, the prediction has ended then.
    pub(super) fn poll(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
        (index, index_blocks): (&Index, BlockNo),
        ranges: &KeyRanges,
        predicted: &mut Vec<BlockNo>,
    ) -> Poll<Result<(), BtreeError>> {
        loop {
            let (block, level, neighbour) = match self.place {
                Place::Ended => return Poll::Ready(Ok(())),
                Place::Meta => (0, 0, None),
                // The root is the only page.
                Place::Descent { block, level: 0 } => {
                    predicted.push(block);
                    self.place = Place::Ended;
                    return Poll::Ready(Ok(()));
                }
                Place::Descent { block, level } => (block, level, None),
                Place::Neighbour { block, from } => (block, 1, Some(from)),
            };
            if !self.requested {
                self.pages.extend([block]);
                self.requested = true;
            }
            let is_meta = self.place == Place::Meta;
            let Self { pages, from, .. } = &mut *self;
            let from = &*from;
            let polled = ready!(pages.poll_page(backend, wait, |_, page| {
                if is_meta {
                    return Meta::parse(page).map(InnerPage::Meta).map_err(BtreeProblem::Fault);
                }
                look(
                    &BtreePage::parse(page).map_err(BtreeProblem::Fault)?,
                    level,
                    neighbour,
                    ranges,
                    from,
                )
            }));
            self.requested = false;
            let found = match polled {
                Ok(Ok(found)) => found,
                Ok(Err(problem)) => {
                    self.place = Place::Ended;
                    return Poll::Ready(Err(index.corrupt(block, problem)));
                }
                Err(error) => {
                    // After a cancellation, the page is read again.
                    self.pages.clear();
                    let error = BtreeError::from(error);
                    if !error.is_cancelled() {
                        self.place = Place::Ended;
                    }
                    return Poll::Ready(Err(error));
                }
            };
            let before = predicted.len();
            self.go_on(block, level, found, predicted);
            self.visits.found(predicted.len() - before);
            if predicted.len() > before {
                return Poll::Ready(Ok(()));
            }
            if !self.visits.count(index_blocks) {
                self.place = Place::Ended;
                let problem = BtreeProblem::Circle { blocks: index_blocks };
                return Poll::Ready(Err(index.corrupt(block, problem)));
            }
        }
    }

    fn go_on(
        &mut self,
        block: BlockNo,
        level: u32,
        found: InnerPage,
        predicted: &mut Vec<BlockNo>,
    ) {
        self.place = match found {
            InnerPage::Meta(meta) => {
                self.meta = Some(meta);
                self.top()
            }
            InnerPage::Right(right) => Place::Descent { block: right, level },
            InnerPage::Down(child) => {
                Place::Descent { block: child, level: level.saturating_sub(1) }
            }
            InnerPage::Children { children, neighbour } => {
                predicted.extend(children.blocks);
                match (children.rest, neighbour) {
                    (Some(rest), _) if children.skips => {
                        self.from = rest;
                        self.top()
                    }
                    (Some(rest), Some(neighbour)) => {
                        self.from = rest;
                        Place::Neighbour { block: neighbour, from: block }
                    }
                    _ => Place::Ended,
                }
            }
        };
    }
}

/// What a page above the leaves says.
enum InnerPage {
    Meta(Meta),
    Right(BlockNo),
    Down(BlockNo),
    Children { children: Children, neighbour: Option<BlockNo> },
}

fn look(
    page: &BtreePage<'_>,
    level: u32,
    neighbour: Option<BlockNo>,
    ranges: &KeyRanges,
    from: &Cut,
) -> Result<InnerPage, BtreeProblem> {
    if !page.is_deleted() && page.level() != level {
        return Err(BtreeProblem::Level { found: page.level(), expected: level });
    }
    let forward = ranges.direction() == Direction::Forward;
    let next = if forward { page.right() } else { page.left() };
    if let Some(left_behind) = neighbour {
        is_neighbour(page, left_behind, forward)?;
        // A page that is being deleted has no children. The scan goes on behind it.
        if page.is_ignored() {
            let children = Children { blocks: Vec::new(), rest: Some(from.clone()), skips: false };
            return Ok(InnerPage::Children { children, neighbour: next });
        }
    }
    let fault = BtreeProblem::Fault;
    if neighbour.is_none() {
        match ranges.step(page, from).map_err(fault)? {
            Step::Right(right) => return Ok(InnerPage::Right(right)),
            Step::Here(_) => return Err(fault(Fault::LeafLevel { found: page.level() })),
            Step::Down(child) if level > 1 => return Ok(InnerPage::Down(child)),
            Step::Down(_) => {}
        }
    }
    let children = ranges.children(page, from).map_err(fault)?;
    Ok(InnerPage::Children { children, neighbour: next })
}

/// Checks that a page links back to the neighbour whose link led here. `right` is the direction of
/// that link.
pub(super) fn is_neighbour(
    page: &BtreePage<'_>,
    expected: BlockNo,
    right: bool,
) -> Result<(), BtreeProblem> {
    let back = if right { page.left() } else { page.right() };
    match back == Some(expected) {
        true => Ok(()),
        false => Err(BtreeProblem::Sibling { found: back.unwrap_or_default(), expected }),
    }
}
