//! The handle table: a fixed number of I/O descriptions, reused for ever.
//!
//! A handle is a state word, a few atomic fields that anybody may read (for the views), and a body
//! that exactly one thread owns at any time: the session until SUBMITTED, the thread that executes
//! or reaps until COMPLETED_IO, the claimer until IDLE. The table is allocated at start; nothing
//! about an I/O under way lives anywhere else but in the issuer's slot, which the body points to.

use crate::bitmap::Bitmap;
use crate::clock::Time;
use crate::file::File;
use crate::limits::SESSIONS_MAX;
use crate::method::MethodKind;
use crate::request::{IoVec, Operation};
use crate::session::Class;
use crate::slots::SlotTable;
use crate::state::StateWord;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::cell::UnsafeCell;

/// `raw` before there is a result: no errno and no length.
pub(crate) const NO_RESULT: i64 = i64::MIN;

#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) word: StateWord,
    pub(crate) view: View,
    /// Sessions that wait for this I/O without having issued it.
    pub(crate) joiners: Bitmap,
    body: UnsafeCell<Body>,
}

/// What any thread may read at any time. Meaningful while the generation stands.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) session: AtomicU32,
    pub(crate) class: AtomicU8,
    pub(crate) operation: AtomicU8,
    pub(crate) method: AtomicU8,
    pub(crate) flags: AtomicU8,
    pub(crate) offset: AtomicU64,
    pub(crate) length: AtomicU32,
    pub(crate) data_length: AtomicU32,
    pub(crate) file_id: AtomicU64,
    pub(crate) raw: AtomicI64,
    pub(crate) outcome: AtomicU64,
    pub(crate) started: AtomicU64,
    pub(crate) ended: AtomicU64,
}

/// Bits of [`View::flags`].
pub(crate) mod flag {
    /// Executed by the issuer's own thread (`f_sync`).
    pub(crate) const SYNCHRONOUS: u8 = 1;
    /// Goes through the page cache (`f_buffered`).
    pub(crate) const BUFFERED: u8 = 2;
}

/// What only the owner of the state may touch.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) file: Option<File>,
    pub(crate) table: Option<Arc<SlotTable>>,
    pub(crate) slot: u32,
    /// The memory was given by frame numbers, so the slot's own has no part in the I/O.
    pub(crate) by_frames: bool,
    pub(crate) iovecs: Box<[IoVec]>,
    pub(crate) iovec_count: usize,
    pub(crate) attempts: u32,
    /// Write-back is to be waited for.
    pub(crate) awaits: bool,
}

// SAFETY: the body is reached only through `body`, whose contract gives it one owner at a time; the
// state word's sequentially consistent transitions order the owners. Everything else is atomic.
unsafe impl Sync for Handle {}
// SAFETY: the raw pointers in the body point into frames of the region, which lives as long as the
// core that owns the handles, and may be used on any thread.
unsafe impl Send for Handle {}

impl Handle {
    pub(crate) fn new(iovecs: usize) -> Self {
        let empty = IoVec { start: std::ptr::null_mut(), length: 0 };
        Self {
            word: StateWord::new(),
            view: View::new(),
            joiners: Bitmap::new(SESSIONS_MAX),
            body: UnsafeCell::new(Body {
                file: None,
                table: None,
                slot: 0,
                by_frames: false,
                iovecs: vec![empty; iovecs].into_boxed_slice(),
                iovec_count: 0,
                attempts: 0,
                awaits: false,
            }),
        }
    }

    /// The body.
    ///
    /// # Safety
    /// The caller owns the handle in its present state (see the module) and holds no other
    /// reference to the body.
    #[expect(clippy::mut_from_ref, reason = "exclusive by the handle's state, not by a borrow")]
    pub(crate) unsafe fn body(&self) -> &mut Body {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.body.get() }
    }
}

impl View {
    fn new() -> Self {
        Self {
            session: AtomicU32::new(0),
            class: AtomicU8::new(0),
            operation: AtomicU8::new(0),
            method: AtomicU8::new(0),
            flags: AtomicU8::new(0),
            offset: AtomicU64::new(0),
            length: AtomicU32::new(0),
            data_length: AtomicU32::new(0),
            file_id: AtomicU64::new(0),
            raw: AtomicI64::new(NO_RESULT),
            outcome: AtomicU64::new(0),
            started: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }

    pub(crate) fn operation(&self) -> Operation {
        Operation::from_number(self.operation.load(Ordering::Acquire))
    }

    pub(crate) fn class(&self) -> Class {
        Class::from_number(self.class.load(Ordering::Acquire))
    }

    pub(crate) fn method(&self) -> MethodKind {
        MethodKind::from_number(self.method.load(Ordering::Acquire))
    }

    /// How long the storage had it.
    pub(crate) fn device_time(&self) -> std::time::Duration {
        let started = Time::from_nanos(self.started.load(Ordering::Acquire));
        Time::from_nanos(self.ended.load(Ordering::Acquire)).since(started)
    }
}
