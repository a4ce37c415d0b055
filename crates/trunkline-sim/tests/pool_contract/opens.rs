//! Polled streams whose segments are not open. A poll must not open a file itself, because that may
//! block: it returns `Poll::Pending`, the thread's other tasks go on, and the task is woken when a
//! worker has opened the file.

use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use trunkline_aio::facade::Arc;
use trunkline_engine::pool::{Backend, BackendType, Pool, ReadError};
use trunkline_engine::read_stream::{BlockList, ReadStream, StreamOptions};
use trunkline_engine::storage::{FileSystem, OpenFiles, Relation, Storage};
use trunkline_format::{BlockNo, SEGMENT_BLOCKS};
use trunkline_sim::matrix::cluster::{check, layout, relation};
use trunkline_sim::matrix::{Cluster, FileCall, Needs, is_version, page};
use trunkline_sim::{CountingWaker, block_on};

/// A stream with a task of its own.
struct Task {
    stream: ReadStream<BlockList>,
    wakes: Arc<CountingWaker>,
    waker: Waker,
    seen: u32,
}

impl Task {
    fn new(backend: &Backend, relation: &Relation, blocks: &[BlockNo]) -> Self {
        let (wakes, waker) = CountingWaker::new();
        let options = StreamOptions { full: true, ..StreamOptions::default() };
        let list = BlockList::new(blocks.to_vec());
        Self { stream: ReadStream::new(backend, relation, list, options), wakes, waker, seen: 0 }
    }

    /// Polls once.
    fn poll(&mut self, backend: &mut Backend) -> Poll<Result<Option<BlockNo>, ReadError>> {
        self.seen = self.wakes.count();
        let polled = self.stream.poll_next(&mut Context::from_waker(&self.waker), backend);
        polled.map_ok(|found| {
            found.map(|found| {
                let page = found.pin.try_read().expect("not locked");
                let is = |number| is_version(&*page, number, found.block, 0);
                assert!(is(0) || is(1));
                found.block
            })
        })
    }

    /// Polls when woken, until there is a page, an error or the end.
    fn finish(
        &mut self,
        cluster: &Cluster,
        backend: &mut Backend,
    ) -> Result<Option<BlockNo>, ReadError> {
        loop {
            match self.poll(backend) {
                Poll::Ready(found) => return found,
                Poll::Pending => {
                    cluster.wait_until("a wake-up", || self.wakes.count() > self.seen);
                }
            }
        }
    }
}

/// The file of one task is being opened while the other task of the same thread and session reads
/// all its blocks.
#[test]
fn a_task_goes_on_while_the_file_of_another_is_opened() {
    check(Needs::default().asynchronous(), |cluster| {
        cluster.create(1, 4);
        let mut backend = cluster.async_backend();
        let mut opens = Task::new(&backend, &cluster.relation(1), &[2, 3]);
        let mut reads = Task::new(&backend, &cluster.relation(0), &[5, 7, 9]);
        let opening = cluster.files.hold(FileCall::Open);
        for _ in 0..2 {
            assert!(opens.poll(&mut backend).is_pending());
        }
        opening.wait_for_arrivals(1);
        for block in [5, 7, 9] {
            assert_eq!(reads.finish(cluster, &mut backend).expect("reads"), Some(block));
        }
        assert!(opens.poll(&mut backend).is_pending(), "the file is still being opened");
        opening.release();
        for block in [Some(2), Some(3), None] {
            assert_eq!(opens.finish(cluster, &mut backend).expect("reads"), block);
        }
        assert_eq!(opening.arrivals(), 1, "opened once");
    });
}

/// The length of a table is being determined while the other task of the same thread and session
/// reads its block.
#[test]
fn a_task_goes_on_while_the_length_of_a_table_is_determined() {
    check(Needs::default(), |cluster| {
        if !cluster.is_asynchronous() {
            return;
        }
        cluster.create(1, 4);
        let mut backend = cluster.async_backend();
        let mut reads = Task::new(&backend, &cluster.relation(0), &[5]);
        let held = cluster.files.hold(FileCall::Length);
        let mut length = cluster.relation(1).count_blocks(backend.session());
        held.wait_for_arrivals(1);
        assert_eq!(reads.finish(cluster, &mut backend).expect("reads"), Some(5));
        assert!(!length.is_done());
        held.release();
        let mut wait = backend.session().polled_wait();
        block_on(poll_fn(|context| {
            backend.session().poll_for(context, &mut wait, || length.is_done())
        }))
        .expect("not cancelled");
        assert_eq!(length.take().expect("over").expect("a length"), 4);
    });
}

/// Look-ahead needs the next segment. The pages before it must be returned without waiting for
/// that.
#[test]
fn pages_are_returned_while_look_ahead_opens_the_next_segment() {
    check(Needs::default().asynchronous(), |cluster| {
        let segment: Vec<u8> =
            (0..4).flat_map(|block| page(0, SEGMENT_BLOCKS + block, 0, 0)).collect();
        cluster.write_segment(0, 1, &segment);
        let mut backend = cluster.async_backend();
        let list = [3, 4, SEGMENT_BLOCKS + 2];
        let mut task = Task::new(&backend, &cluster.relation(0), &list);
        let opening = cluster.files.hold(FileCall::Open);
        assert_eq!(task.finish(cluster, &mut backend).expect("reads"), Some(3));
        opening.wait_for_arrivals(1);
        assert_eq!(task.finish(cluster, &mut backend).expect("reads"), Some(4));
        assert!(task.poll(&mut backend).is_pending());
        opening.release();
        assert_eq!(task.finish(cluster, &mut backend).expect("reads"), Some(list[2]));
    });
}

/// Only one file may be open, and each poll of a task evicts the file of the other one. A task must
/// be able to use the file that was opened for it.
#[test]
fn tasks_that_evict_each_others_file_both_finish() {
    check(Needs::default(), |cluster| {
        cluster.create(1, 16);
        let files = Arc::clone(&cluster.files) as Arc<dyn FileSystem>;
        let files = OpenFiles::read_only(1, files);
        let storage = Storage::new(cluster.root(), layout(), &files, false);
        let pool = Pool::new(&cluster.aio, 32).expect("a pool");
        let mut backend = pool.backend(BackendType::Client).expect("a session");
        backend.session().set_may_block(false);
        let blocks: Vec<BlockNo> = (0..16).collect();
        let mut tasks =
            [0, 1].map(|number| Task::new(&backend, &relation(&storage, number), &blocks));
        let mut pages = [0, 0];
        while pages != [16, 16] {
            for (task, pages) in tasks.iter_mut().zip(&mut pages) {
                while *pages < 16
                    && let Poll::Ready(found) = task.poll(&mut backend)
                {
                    assert_eq!(found.expect("reads"), Some(*pages));
                    *pages += 1;
                }
            }
            let goes_on = |(task, pages): (&Task, &BlockNo)| *pages < 16 && task.is_woken();
            let over = pages == [16, 16];
            cluster.wait_until("a wake-up", || over || tasks.iter().zip(&pages).any(goes_on));
        }
    });
}

impl Task {
    fn is_woken(&self) -> bool {
        self.wakes.count() > self.seen
    }
}

/// The task can't use its file yet, because no buffer is free, and then the file is evicted from
/// the table. The task must not have to open it again.
///
/// The session may block, so it opens the file within the poll. A worker could open it before the
/// first poll ends, which would then start the read and have a buffer; or it could be held up by
/// the reads that keep the buffers in use.
#[test]
fn an_opened_file_is_kept_until_there_is_a_buffer() {
    check(Needs { buffers: 16, ..Needs::default().asynchronous() }, |cluster| {
        cluster.create(1, 4);
        let files = OpenFiles::read_only(1, Arc::clone(&cluster.files) as _);
        let storage = Storage::new(cluster.root(), layout(), &files, false);
        let mut backend = cluster.backend();
        let mut task = Task::new(&backend, &relation(&storage, 1), &[2]);
        let held = cluster.fill_with_reads(16);
        assert!(task.poll(&mut backend).is_pending());
        assert_eq!((files.opens(), backend.pins()), (1, 0), "opened, but there is no buffer");
        relation(&storage, 0).locate(0).expect("opens");
        assert!(!relation(&storage, 1).is_open(2), "evicted");
        assert!(task.poll(&mut backend).is_pending());
        drop(held);
        assert_eq!(task.finish(cluster, &mut backend).expect("reads"), Some(2));
        assert_eq!(files.opens(), 2);
    });
}

/// A worker has opened the file, and the task finds it in the table. It must not have to open it
/// again either, if no buffer is free until the file is evicted.
#[test]
fn a_file_opened_by_a_worker_is_kept_until_there_is_a_buffer() {
    check(Needs { buffers: 16, ..Needs::default().asynchronous() }, |cluster| {
        cluster.create(1, 4);
        let files = OpenFiles::read_only(1, Arc::clone(&cluster.files) as _);
        let storage = Storage::new(cluster.root(), layout(), &files, false);
        let mut backend = cluster.async_backend();
        let mut task = Task::new(&backend, &relation(&storage, 1), &[2]);
        let opening = cluster.files.hold(FileCall::Open);
        let waits = task.poll(&mut backend).is_pending();
        opening.release();
        assert!(waits);
        cluster.wait_until("the file is open", || task.is_woken());
        // The task has no buffer, because it hasn't been polled since.
        let held = cluster.fill_with_reads(16);
        assert!(task.poll(&mut backend).is_pending());
        assert_eq!((files.opens(), backend.pins()), (1, 0), "opened, but there is no buffer");
        relation(&storage, 0).locate(0).expect("opens");
        assert!(!relation(&storage, 1).is_open(2), "evicted");
        drop(held);
        assert_eq!(task.finish(cluster, &mut backend).expect("reads"), Some(2));
        assert_eq!(files.opens(), 2);
    });
}

/// A stream doesn't keep a file open that it has used, for example after the relation was dropped.
#[test]
fn a_stream_closes_the_file_that_was_opened_for_it() {
    check(Needs::default(), |cluster| {
        cluster.create(1, 4);
        let mut backend = cluster.async_backend();
        let mut task = Task::new(&backend, &cluster.relation(1), &[1]);
        assert_eq!(task.finish(cluster, &mut backend).expect("reads"), Some(1));
        let open = cluster.aio.open_files();
        cluster.storage.forget(cluster.relation(1).locator());
        cluster.wait_until("closed", || cluster.aio.open_files() < open);
        assert_eq!(task.finish(cluster, &mut backend).expect("reads"), None);
    });
}

/// The error names the file, and the stream goes on after it.
#[test]
fn a_failed_open_is_returned_by_the_poll() {
    check(Needs::default(), |cluster| {
        cluster.create(1, 4);
        let mut backend = cluster.async_backend();
        let mut task = Task::new(&backend, &cluster.relation(1), &[1, 2]);
        cluster.files.fail(FileCall::Open, libc::EIO);
        let error = task.finish(cluster, &mut backend).expect_err("not opened");
        assert!(error.to_string().contains("16385"), "{error}");
        cluster.files.clear_fault();
        // Look-ahead may already have tried to open the file for the second block.
        let second = task.finish(cluster, &mut backend);
        assert!(matches!(second, Ok(Some(2)) | Err(ReadError::Storage(_))), "{second:?}");
        assert!(matches!(task.finish(cluster, &mut backend), Ok(None)));
    });
}

/// The task gives up while its file is being opened. Nothing waits for the open any more.
#[test]
fn a_stream_can_be_dropped_while_its_file_is_opened() {
    check(Needs::default().asynchronous(), |cluster| {
        cluster.create(1, 4);
        let mut backend = cluster.async_backend();
        let opening = cluster.files.hold(FileCall::Open);
        let mut gives_up = Task::new(&backend, &cluster.relation(1), &[1]);
        assert!(gives_up.poll(&mut backend).is_pending());
        opening.wait_for_arrivals(1);
        drop(gives_up);
        assert_eq!(backend.pins(), 0);
        opening.release();
        let mut again = Task::new(&backend, &cluster.relation(1), &[1]);
        assert_eq!(again.finish(cluster, &mut backend).expect("reads"), Some(1));
    });
}
