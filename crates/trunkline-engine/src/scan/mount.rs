//! The files of one mount, read by one thread through one session.
//!
//! A read that the page cache answers at once is done when it has been issued; it is looked at
//! before the next one, in the same memory. Others are waited for, whichever is first.

use std::io;

use trunkline_aio::{Cancelled, Class, MethodKind, Session};
use trunkline_format::BLOCK_SIZE;

use super::JobError;
use super::feed::{Feed, Next};
use super::job::Job;
use super::window::Window;
use crate::datadir::FileEntry;

/// The window is filled up again when this part of it is free: fewer, larger batches.
const REFILL_PART: usize = 4;

/// What a mount's thread may use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) slots: usize,
    pub(super) open_files: usize,
}

/// Reads all `files`, none of which is empty.
pub(super) fn read(job: &Job, files: Vec<FileEntry>, limits: Limits) -> Result<(), JobError> {
    let mut session =
        job.aio.session().map_err(|error| JobError::Start(io::Error::other(error)))?;
    job.enrol(session.canceller());
    let mut window = Window::new(job, limits.slots)?;
    let mut feed = Feed::new(files, job, limits.open_files);
    let sync = job.aio.method_status().used == MethodKind::Sync;
    let ended = if sync || job.options.depth <= 1 {
        one_by_one(job, &mut session, &mut window, &mut feed)
    } else {
        many(job, &mut session, &mut window, &mut feed)
    };
    window.finish();
    // To be cancelled is a way to end, and the caller knows.
    let _: Result<(), Cancelled> = ended;
    Ok(())
}

/// Reads in this thread, one after the other, with advice ahead where the method wants it.
fn one_by_one(
    job: &Job,
    session: &mut Session,
    window: &mut Window<'_>,
    feed: &mut Feed,
) -> Result<(), Cancelled> {
    let ahead = if job.options.depth > 1 && !job.options.direct { job.options.depth } else { 0 };
    while !job.is_stopping() {
        feed.look_ahead(job, ahead as usize, |piece| {
            let offset = u64::from(piece.block) * BLOCK_SIZE as u64;
            let length = u64::from(piece.blocks) * BLOCK_SIZE as u64;
            session.advise(&piece.reading.file, offset, length);
        });
        let Next::Piece(piece) = feed.next(job, 0) else { return Ok(()) };
        let io = session.acquire(Class::Maintenance)?;
        window.issue(io.needed_now(), piece, feed);
        while window.in_flight() > 0 {
            window.wait(session, feed)?;
        }
    }
    Ok(())
}

/// Keeps the window full.
fn many(
    job: &Job,
    session: &mut Session,
    window: &mut Window<'_>,
    feed: &mut Feed,
) -> Result<(), Cancelled> {
    let enough = (window.slots() / REFILL_PART).max(1);
    loop {
        if window.in_flight() == 0 || window.idle() >= enough {
            fill(job, session, window, feed)?;
        }
        if window.in_flight() == 0 {
            return Ok(());
        }
        window.wait(session, feed)?;
        window.drain(feed);
    }
}

/// Issues reads until the window is full or nothing is left to read.
fn fill(
    job: &Job,
    session: &mut Session,
    window: &mut Window<'_>,
    feed: &mut Feed,
) -> Result<(), Cancelled> {
    let mut batch = session.batch();
    while window.idle() > 0 && !job.is_stopping() {
        let Next::Piece(piece) = feed.next(job, window.in_flight()) else { break };
        let io = if window.in_flight() == 0 {
            batch.acquire(Class::Maintenance)?
        } else if let Some(io) = batch.try_acquire(Class::Maintenance) {
            io
        } else {
            feed.put_back(piece);
            break;
        };
        window.issue(io, piece, feed);
        window.drain(feed);
    }
    Ok(())
}
