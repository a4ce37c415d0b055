//! Reads one partition of a scan: pages, rows, batches.
//!
//! The reader is polled. It has one session of the engine, which waits for pages by waking the task,
//! and it holds no page between two polls. TOAST values can't be fetched that way, so pages with TOAST
//! pointers are copied, and a thread for blocking work fetches the values of many rows at once, with
//! the session that is meanwhile not used for anything else.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use trunkline_engine::heap::{
    HeapPage, HeapRow, PageBatch, RowError, ScanOptions, ToastBatch, ToastReader, has_external,
};
use trunkline_engine::index_scan::ExpectedRows;
use trunkline_engine::pool::{Backend, ReadError};
use trunkline_engine::read_stream::{ParallelRange, StreamOptions};
use trunkline_sql::SqlError;

use super::access::TableAccess;
use super::batch_size::{BatchSize, FIRST_ROWS};
use super::cancellation::IoWait;
use super::columns::ScanColumns;
use super::counters::ScanCounters;
use super::failure::{read_error, row_error};
use super::page_source::PageSource;
use super::row_decoder::{Fetched, ROWS_PER_PAGE, RowDecoder};
use crate::access_path::AccessPath;

/// The most pages to copy before their TOAST values are fetched.
pub(super) const COPIED_PAGES_MAX: usize = 32;

/// The bytes of TOAST values at which they are fetched.
pub(super) const FETCH_BYTES: u64 = 8 << 20;

/// After this many pages without a batch, other tasks get a turn.
pub(super) const PAGES_PER_TURN: usize = 256;

/// Reads one partition.
pub(super) struct PartitionReader {
    access: TableAccess,
    path: Arc<AccessPath>,
    parts: ParallelRange,
    unordered: bool,
    decoder: RowDecoder,
    size: BatchSize,
    state: State,
    /// Pages that wait for TOAST values, in the order of the scan.
    copied: PageBatch,
    copied_rows: usize,
    /// Whether the pages' rows may have TOAST pointers that the scan wants.
    may_toast: bool,
    /// Where to count, and as which partition.
    counters: (ScanCounters, usize),
    /// The last poll ended before a page, or a value of TOAST, had been read.
    waiting: Option<IoWait>,
}

enum State {
    /// Nothing has been opened yet.
    Start,
    Reading(Box<Open>),
    /// A thread fetches TOAST values. The scan ends after them if `ended`.
    Fetching {
        open: Box<OpenScan>,
        task: SpawnedTask<FetchResult>,
        ended: bool,
    },
    Ended,
}

/// A scan with its session.
struct Open {
    backend: Backend,
    scan: OpenScan,
}

struct OpenScan {
    pages: PageSource,
    toast: Option<ToastReader>,
    values: ToastBatch,
    counters: (ScanCounters, usize),
}

impl Drop for OpenScan {
    fn drop(&mut self) {
        let mut counts = self.pages.counts();
        if let Some(toast) = &self.toast {
            counts.buffers.add(&toast.buffer_usage());
        }
        let (counters, partition) = &self.counters;
        counters.add(*partition, &counts);
        counters.closed();
    }
}

/// What a fetch gives back.
pub(super) struct FetchResult {
    pub(super) backend: Backend,
    pub(super) toast: ToastReader,
    pub(super) values: ToastBatch,
    pub(super) result: Result<(), ReadError>,
}

impl FetchResult {
    /// Fetches values on a thread for blocking work.
    pub(super) fn spawn(
        mut backend: Backend,
        mut toast: ToastReader,
        mut values: ToastBatch,
    ) -> SpawnedTask<Self> {
        SpawnedTask::spawn_blocking(move || {
            backend.session().set_may_block(true);
            let result = toast.fetch(&mut backend, &mut values);
            backend.session().set_may_block(false);
            Self { backend, toast, values, result }
        })
    }
}

impl PartitionReader {
    pub(super) fn new(
        (access, path): (TableAccess, Arc<AccessPath>),
        parts: ParallelRange,
        unordered: bool,
        columns: ScanColumns,
        schema: SchemaRef,
        counters: (ScanCounters, usize),
    ) -> Self {
        let may_toast = access.files.toast.is_some() && columns.has_varlena();
        let decoder = RowDecoder::new(columns, &access.files.rows, schema, FIRST_ROWS);
        let (state, copied) = (State::Start, PageBatch::new());
        Self {
            access,
            path,
            parts,
            unordered,
            decoder,
            size: BatchSize::new(),
            state,
            copied,
            copied_rows: 0,
            may_toast,
            counters,
            waiting: None,
        }
    }

    /// Returns the next batch, or `None` at the end. After an error, the reader has ended. `wanted` are
    /// the rows that a limit still needs.
    pub(super) fn poll_batch(
        &mut self,
        context: &mut Context<'_>,
        wanted: Option<usize>,
    ) -> Poll<Option<Result<RecordBatch, SqlError>>> {
        let polled = ready!(self.poll(context, wanted));
        if !matches!(polled, Ok(Some(_))) {
            self.state = State::Ended;
        }
        Poll::Ready(polled.transpose())
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
        wanted: Option<usize>,
    ) -> Poll<Result<Option<RecordBatch>, SqlError>> {
        let mut pages = 0;
        self.waiting = None;
        loop {
            self.access.cancellation.check()?;
            match &mut self.state {
                State::Start => self.state = State::Reading(Box::new(self.open()?)),
                State::Fetching { task, .. } => {
                    let polled = Pin::new(task).poll(context);
                    let fetched = ready!(self.io(polled));
                    self.fetched(fetched)?;
                }
                State::Ended => return Poll::Ready(self.last_batch()),
                State::Reading(_) => {
                    if pages == PAGES_PER_TURN {
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    pages += 1;
                    let polled = self.poll_page(context, wanted);
                    ready!(self.io(polled))?;
                }
            }
            if self.size.is_complete(self.decoder.rows(), self.decoder.bytes(), wanted) {
                self.size.returned(self.decoder.rows(), self.decoder.bytes());
                return Poll::Ready(self.decoder.finish().map(Some));
            }
        }
    }

    /// Notes whether a poll has to wait for I/O.
    fn io<T>(&mut self, polled: Poll<T>) -> Poll<T> {
        if polled.is_pending() {
            self.waiting = Some(self.access.cancellation.wait_for_io());
        }
        polled
    }

    fn last_batch(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        match self.decoder.rows() {
            0 => Ok(None),
            _ => self.decoder.finish().map(Some),
        }
    }

    /// Opens a session and the scan.
    fn open(&self) -> Result<Open, SqlError> {
        let mut backend = self.access.session()?;
        backend.session().set_may_block(false);
        let ScanOptions { stream, .. } = self.access.scan_options(self.unordered);
        let page_use = self.decoder.page_use();
        let kind = &self.path.kind;
        let pages =
            PageSource::open(&backend, &self.access, kind, &self.parts, self.unordered, page_use)?;
        let toast = self.access.files.toast.clone().filter(|_| self.may_toast).map(|table| {
            let stream = StreamOptions { sequential: false, ..stream };
            ToastReader::new(&backend, table, &self.access.transactions, stream)
        });
        let (values, counters) = (ToastBatch::new(), self.counters.clone());
        counters.0.opened();
        Ok(Open { backend, scan: OpenScan { pages, toast, values, counters } })
    }

    /// Decodes the next page, or copies it if it must wait for TOAST values.
    fn poll_page(
        &mut self,
        context: &mut Context<'_>,
        wanted: Option<usize>,
    ) -> Poll<Result<(), SqlError>> {
        let rows = self.decoder.rows() + self.copied_rows;
        let expected = self.size.expected(rows, self.decoder.bytes(), wanted);
        let (ended, full) = ready!(self.read_page(context, expected))?;
        if ended && self.copied.is_empty() {
            self.state = State::Ended;
        } else if ended || full || wanted.is_some_and(|wanted| self.has_copied(wanted)) {
            self.fetch(ended);
        }
        Poll::Ready(Ok(()))
    }

    /// Whether the rows that wait for TOAST values are all that a limit still needs.
    fn has_copied(&self, wanted: usize) -> bool {
        self.copied_rows > 0 && self.decoder.rows() + self.copied_rows >= wanted
    }

    /// Decodes or copies the next page. Returns whether that was the end of the scan, and whether
    /// enough has been copied.
    fn read_page(
        &mut self,
        context: &mut Context<'_>,
        expected: ExpectedRows,
    ) -> Poll<Result<(bool, bool), SqlError>> {
        let Self { state, decoder, copied, copied_rows, may_toast, .. } = self;
        let State::Reading(open) = state else { return Poll::Ready(Ok((true, false))) };
        let Open { backend, scan } = &mut **open;
        let OpenScan { pages, values, .. } = scan;
        let may_toast = *may_toast;
        pages.expect_rows(expected);
        let ended = ready!(pages.poll_page(context, backend, |page| {
            let Some(page) = page else { return Ok(true) };
            if !copied.is_empty() || (may_toast && has_toast(&page)) {
                let rows = rows_of(page.rows())?;
                rows.iter().for_each(|row| decoder.pointers(row, values));
                if !copied.is_empty() || !values.is_empty() {
                    copied.push(&page);
                    *copied_rows += rows.len();
                } else {
                    decode(decoder, &rows, values)?;
                }
            } else if !decoder.decode_plain(&page)? {
                decode(decoder, &rows_of(page.rows())?, values)?;
            }
            Ok(false)
        }))?;
        let full = copied.len() >= COPIED_PAGES_MAX || values.bytes() >= FETCH_BYTES;
        Poll::Ready(Ok((ended, full)))
    }

    /// Starts to fetch the TOAST values of the copied pages.
    fn fetch(&mut self, ended: bool) {
        let State::Reading(open) = std::mem::replace(&mut self.state, State::Ended) else { return };
        let Open { backend, mut scan } = *open;
        let Some(toast) = scan.toast.take() else { return };
        let task = FetchResult::spawn(backend, toast, std::mem::take(&mut scan.values));
        self.state = State::Fetching { open: Box::new(scan), task, ended };
    }

    /// Decodes the copied pages after their TOAST values have been fetched.
    fn fetched(
        &mut self,
        fetched: Result<FetchResult, tokio::task::JoinError>,
    ) -> Result<(), SqlError> {
        let State::Fetching { mut open, ended, .. } =
            std::mem::replace(&mut self.state, State::Ended)
        else {
            return Ok(());
        };
        let fetched = fetched.map_err(|error| SqlError::internal(error.to_string()))?;
        let FetchResult { backend, toast, mut values, result } = fetched;
        open.toast = Some(toast);
        result.map_err(|error| read_error(&error))?;
        let rows = rows_of(self.copied.rows())?;
        decode(&mut self.decoder, &rows, &values)?;
        drop(rows);
        self.copied.clear();
        self.copied_rows = 0;
        values.clear();
        if !ended {
            open.values = values;
            self.state = State::Reading(Box::new(Open { backend, scan: *open }));
        }
        Ok(())
    }
}

/// Whether a row of the page has a TOAST pointer.
pub(super) fn has_toast(page: &HeapPage<'_>) -> bool {
    page.rows().any(|row| row.is_ok_and(|row| has_external(&row.tuple)))
}

/// The rows, or the error of the first one that can't be read.
pub(super) fn rows_of<'p>(
    rows: impl Iterator<Item = Result<HeapRow<'p>, RowError>>,
) -> Result<Vec<HeapRow<'p>>, SqlError> {
    // An iterator of results is collected without regard to how many there are at most.
    let (least, most) = rows.size_hint();
    let mut collected = Vec::with_capacity(most.unwrap_or(least).min(ROWS_PER_PAGE));
    for row in rows {
        collected.push(row.map_err(|error| row_error(&error))?);
    }
    Ok(collected)
}

pub(super) fn decode(
    decoder: &mut RowDecoder,
    rows: &[HeapRow<'_>],
    values: &ToastBatch,
) -> Result<(), SqlError> {
    decoder.decode(rows, &mut Fetched { batch: values, next: 0 })
}
