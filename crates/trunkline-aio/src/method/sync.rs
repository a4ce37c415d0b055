//! `sync`: the specification. Every I/O is executed by the session that issues it, at once.
//!
//! There is nothing to submit to: what a method leaves in the batch is executed inline by the
//! session, so this method leaves everything. Look-ahead under `sync` is advice to the kernel, by
//! [`crate::Session::advise`].

use super::{Batch, Method};
use crate::core::Core;
use crate::sync::Arc;

#[derive(Debug)]
pub(crate) struct Sync;

impl Method for Sync {
    fn submit(&self, _core: &Arc<Core>, _batch: &mut Batch<'_>) {}
}
