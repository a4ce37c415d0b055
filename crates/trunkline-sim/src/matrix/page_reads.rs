//! Page reads of a cluster case: single reads, read streams, and the I/Os they issued.
//!
//! Cases that test how reads are combined compare the block range of each I/O with a list of
//! expected ranges.

use super::cluster::{extent, includes};
use super::{Cluster, page};
use crate::probe::PausedIo;
use std::task::{Context, Waker};
use trunkline_engine::pool::{Backend, Page};
use trunkline_engine::read_stream::{BlockList, ReadStream, StreamOptions};
use trunkline_format::BlockNo;

impl Cluster {
    /// A read stream over a list of blocks of relation 0.
    pub fn stream(
        &self,
        backend: &Backend,
        blocks: &[BlockNo],
        options: StreamOptions,
    ) -> ReadStream<BlockList> {
        ReadStream::new(backend, &self.relation(0), BlockList::new(blocks.to_vec()), options)
    }

    /// Starts reading blocks of relation 0, and returns while the reads are still in flight. If the
    /// method is `sync`, the reads are already complete when it returns.
    pub fn start_read(&self, backend: &mut Backend, blocks: &[BlockNo]) -> ReadStream<BlockList> {
        self.make_async(backend);
        let options = StreamOptions { full: true, ..StreamOptions::default() };
        let mut stream = self.stream(backend, blocks, options);
        let _ = stream.poll_next(&mut Context::from_waker(Waker::noop()), backend);
        stream
    }

    /// Reads a block of relation 0, which must contain version 0.
    ///
    /// # Panics
    /// If the read fails, or returns a wrong page.
    pub fn read_ok(&self, backend: &mut Backend, block: BlockNo) {
        let pin = backend.read(&self.relation(0), block).expect("reads");
        self.check_page(&backend.read_lock(pin.page()).expect("locks"), block);
    }

    /// Asserts that a page contains version 0 of a block of relation 0, including its header.
    ///
    /// # Panics
    /// See [`Cluster::read_ok`].
    pub fn check_page(&self, found: &Page<'_>, block: BlockNo) {
        assert!(**found == page(0, block, 0, 0), "block {block}: the wrong page");
    }

    /// Reads a stream to its end and checks each page. Returns the blocks in the order in which the
    /// stream returned them, with an error in place of any block that could not be read.
    ///
    /// # Panics
    /// See [`Cluster::read_ok`].
    pub fn drain(
        &self,
        backend: &mut Backend,
        stream: &mut ReadStream<BlockList>,
    ) -> Vec<Result<BlockNo, String>> {
        let mut seen = Vec::new();
        loop {
            match stream.next(backend) {
                Ok(None) => return seen,
                Ok(Some(found)) => {
                    assert_eq!(found.pin.block(), found.block);
                    let page = backend.read_lock(found.pin).expect("locks");
                    self.check_page(&page, found.block);
                    seen.push(Ok(found.block));
                }
                Err(error) => seen.push(Err(error.to_string())),
            }
        }
    }

    /// First block and number of blocks of each I/O submitted since `probe.record()`.
    pub fn reads(&self) -> Vec<(BlockNo, u32)> {
        self.probe.recorded().iter().map(extent).collect()
    }

    /// Like [`Cluster::reads`], but only one session's I/Os.
    pub fn reads_of(&self, session: u32) -> Vec<(BlockNo, u32)> {
        let ios = self.probe.recorded();
        ios.iter().filter(|io| io.session == session).map(extent).collect()
    }

    /// Holds back the result of the next I/O that covers a block.
    pub fn hold(&self, block: BlockNo) -> PausedIo {
        self.probe.hold_result(move |io| includes(io, block))
    }

    /// Fills some buffers of a pool of 16 with reads that are abandoned while still in flight. The
    /// reads cannot complete until the caller drops all the returned `PausedIo`s. Until then, each
    /// of these buffers is pinned by its I/O, so no session can evict anything if the others are
    /// pinned too.
    ///
    /// Other sessions and streams may only have the rest of the buffers pinned. That includes pages
    /// that are ready, but that their tasks have not taken yet: nothing would unpin them while we
    /// wait here.
    ///
    /// # Panics
    /// If the pool does not have 16 buffers, under `sync`, or if a buffer stays in use.
    pub fn fill_with_reads(&self, buffers: BlockNo) -> Vec<PausedIo> {
        assert!(self.is_asynchronous() && self.pool.buffers() == 16);
        let held = (0..buffers).map(|_| self.probe.hold_result(|_| true)).collect();
        let (mut backend, mut next) = (self.backend(), 0);
        while next < buffers {
            self.wait_until("a buffer for the next read", || {
                let list: Vec<BlockNo> = (next..buffers).collect();
                let mut stream = self.start_read(&mut backend, &list);
                let started = stream.stats().io_blocks as BlockNo;
                stream.release_ahead();
                next += started;
                started > 0
            });
        }
        self.wait_until("the buffers are being read", || {
            let rows = self.pool.rows();
            let read = rows.iter().filter(|row| row.pins == 1 && row.io.is_some());
            read.count() == buffers as usize
        });
        held
    }

    /// Makes all reads of a block fail until `probe.keep_results` is called. The kernel still
    /// executes these reads; we only replace the results that it returns.
    pub fn fail(&self, block: BlockNo, errno: i32) {
        self.probe.change_results(move |io, raw| if includes(io, block) { -errno } else { raw });
    }

    /// Number of pins on a block of relation 0, including I/O pins; 0 if it isn't in the pool.
    pub fn pins(&self, block: BlockNo) -> u32 {
        self.row(0, block).map_or(0, |row| row.pins)
    }

    /// Waits until a block of relation 0 has this many pins.
    pub fn wait_pins(&self, block: BlockNo, pins: u32) {
        self.wait_until(&format!("{pins} pins of block {block}"), || self.pins(block) == pins);
    }
}
