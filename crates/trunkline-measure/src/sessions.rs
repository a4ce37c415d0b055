//! **Sessions** that work concurrently, each in its own thread.
//!
//! A single session works in the calling thread, so that the time of a short run doesn't include
//! starting a thread.

use trunkline_aio::facade::{Arc, Mutex, thread};
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::{BlockList, ReadStream, StreamOptions};
use trunkline_engine::storage::Relation;
use trunkline_format::BlockNo;

use crate::error::MeasureError;
use crate::watcher::Watcher;

/// How many pages a session reads before it asks whether to stop.
const PAGES_BATCHED: u64 = 256;

/// Gives each state a part of the work, all at the same time. Returns the states and the results, in
/// order. `S` is what a session needs, such as its backend.
pub(crate) fn concurrently<S, P, R>(
    states: Vec<S>,
    parts: Vec<P>,
    work: impl Fn(&mut S, P) -> Result<R, MeasureError> + Send + Sync + 'static,
) -> Result<(Vec<S>, Vec<R>), MeasureError>
where
    S: Send + 'static,
    P: Send + 'static,
    R: Send + 'static,
{
    type Done<S, R> = Option<(S, Result<R, MeasureError>)>;
    let mut pairs: Vec<(S, P)> = states.into_iter().zip(parts).collect();
    if pairs.len() == 1
        && let Some((mut state, part)) = pairs.pop()
    {
        let result = work(&mut state, part)?;
        return Ok((vec![state], vec![result]));
    }
    let count = pairs.len();
    let done: Arc<Mutex<Vec<Done<S, R>>>> =
        Arc::new(Mutex::new((0..count).map(|_| None).collect()));
    let work = Arc::new(work);
    let mut threads = Vec::with_capacity(count);
    for (number, (mut state, part)) in pairs.into_iter().enumerate() {
        let (done, work) = (Arc::clone(&done), Arc::clone(&work));
        let started = thread::spawn("measured session", move || {
            let result = work(&mut state, part);
            done.lock()[number] = Some((state, result));
        });
        threads.push(
            started.map_err(|error| MeasureError::Thread(format!("could not start: {error}")))?,
        );
    }
    for started in threads {
        started.join().map_err(|_| MeasureError::Thread("panicked".to_owned()))?;
    }
    let mut both = (Vec::with_capacity(count), Vec::with_capacity(count));
    for slot in std::mem::take(&mut *done.lock()) {
        let (state, result) = slot.ok_or_else(|| MeasureError::Thread("panicked".to_owned()))?;
        both.0.push(state);
        both.1.push(result?);
    }
    Ok(both)
}

/// Reads the blocks through a stream. Takes the share lock of each page and looks at its first byte,
/// as the cheapest possible query would. Returns the number of pages.
pub(crate) fn read_blocks(
    backend: &mut Backend,
    relation: &Relation,
    blocks: Vec<BlockNo>,
    options: StreamOptions,
    watcher: &dyn Watcher,
) -> Result<u64, MeasureError> {
    let mut stream = ReadStream::new(backend, relation, BlockList::new(blocks), options);
    let mut pages = 0;
    while let Some(page) = stream.next(backend)? {
        std::hint::black_box(backend.read_lock(page.pin)?[0]);
        pages += 1;
        if pages % PAGES_BATCHED == 0 && watcher.cancelled() {
            return Err(MeasureError::Cancelled);
        }
    }
    drop(stream);
    backend.publish_counts();
    Ok(pages)
}

/// Splits a list into contiguous parts of nearly equal length, one for each session.
pub(crate) fn split(blocks: &[BlockNo], sessions: usize) -> Vec<Vec<BlockNo>> {
    let (count, sessions) = (blocks.len(), sessions.max(1));
    let part = |number| blocks[count * number / sessions..count * (number + 1) / sessions].to_vec();
    (0..sessions).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_is_in_one_part() {
        let blocks: Vec<BlockNo> = (0..10).collect();
        assert_eq!(split(&blocks, 3), [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 8, 9]]);
        assert_eq!(split(&blocks[..1], 2).concat(), [0]);
        assert_eq!(split(&blocks, 1).concat(), blocks);
    }

    #[test]
    fn results_are_in_the_order_of_the_sessions() {
        for count in [0, 1, 2, 5] {
            let states: Vec<usize> = (0..count).collect();
            let work = |state: &mut usize, part: usize| {
                *state += 100;
                Ok(part * 10)
            };
            let (states, results) = concurrently(states.clone(), states, work).expect("done");
            assert!(states.into_iter().eq((0..count).map(|number| number + 100)));
            assert!(results.into_iter().eq((0..count).map(|number| number * 10)));
        }
    }

    #[test]
    fn an_error_of_one_session_is_the_result() {
        let work = |_: &mut (), part: u32| match part {
            1 => Err(MeasureError::Cancelled),
            part => Ok(part),
        };
        let failed = concurrently(vec![(); 3], vec![0, 1, 2], work);
        assert!(matches!(failed, Err(MeasureError::Cancelled)));
    }
}
