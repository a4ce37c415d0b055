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
use crate::row_sum::RowWork;
use crate::watcher::Watcher;

/// How many pages a session reads before it asks whether to stop.
const PAGES_BATCHED: u64 = 256;

/// Gives each state a part of the work, all at the same time. Returns all states, and the results in
/// order or the first error. `S` is what a session needs, such as its backend: a failed case must not
/// take it away from the next one. Only the state of a thread that panicked is lost.
pub(crate) fn concurrently<S, P, R>(
    states: Vec<S>,
    parts: Vec<P>,
    work: impl Fn(&mut S, P) -> Result<R, MeasureError> + Send + Sync + 'static,
) -> (Vec<S>, Result<Vec<R>, MeasureError>)
where
    S: Send + 'static,
    P: Send + 'static,
    R: Send + 'static,
{
    let count = states.len().min(parts.len());
    let slots: Vec<Slot<S, R>> =
        states.into_iter().map(|state| Slot { state: Some(state), result: None }).collect();
    let slots = Arc::new(Mutex::new(slots));
    let work = move |slots: &Mutex<Vec<Slot<S, R>>>, number: usize, part: P| {
        let Some(mut state) = slots.lock()[number].state.take() else { return };
        let result = work(&mut state, part);
        slots.lock()[number] = Slot { state: Some(state), result: Some(result) };
    };
    let mut problem = None;
    if count == 1 {
        parts.into_iter().take(1).for_each(|part| work(&slots, 0, part));
    } else {
        let work = Arc::new(work);
        let mut threads = Vec::with_capacity(count);
        for (number, part) in parts.into_iter().enumerate().take(count) {
            let (slots, work) = (Arc::clone(&slots), Arc::clone(&work));
            match thread::spawn("measured session", move || work(&slots, number, part)) {
                Ok(started) => threads.push(started),
                Err(error) => {
                    problem = Some(MeasureError::Thread(format!("could not start: {error}")));
                    break;
                }
            }
        }
        for started in threads {
            // A panic leaves no result, which is an error below.
            let _ = started.join();
        }
    }
    let (mut states, mut results) = (Vec::new(), Vec::with_capacity(count));
    for (number, slot) in std::mem::take(&mut *slots.lock()).into_iter().enumerate() {
        states.extend(slot.state);
        match slot.result {
            Some(Ok(result)) => results.push(result),
            Some(Err(error)) => problem = Some(problem.unwrap_or(error)),
            None if number >= count => {}
            None => {
                problem.get_or_insert_with(|| MeasureError::Thread("panicked".to_owned()));
            }
        }
    }
    (states, problem.map_or(Ok(results), Err))
}

/// The state of one session, and its result.
struct Slot<S, R> {
    /// `None` while the session works, and if it panicked.
    state: Option<S>,
    result: Option<Result<R, MeasureError>>,
}

/// Reads the blocks through a stream. Takes the share lock of each page and looks at its first byte,
/// as the cheapest possible query would, or adds up the selected rows. Returns the number of pages
/// and the sum.
pub(crate) fn read_blocks(
    backend: &mut Backend,
    relation: &Relation,
    blocks: Vec<BlockNo>,
    (options, rows): (StreamOptions, Option<RowWork>),
    watcher: &dyn Watcher,
) -> Result<(u64, i64), MeasureError> {
    let mut stream = ReadStream::new(backend, relation, BlockList::new(blocks), options);
    let (mut pages, mut sum) = (0, 0);
    while let Some(page) = stream.next(backend)? {
        let page = backend.read_lock(page.pin)?;
        match &rows {
            None => _ = std::hint::black_box(page[0]),
            Some(rows) => sum += rows.sum(&page, pages as usize),
        }
        drop(page);
        pages += 1;
        if pages % PAGES_BATCHED == 0 && watcher.cancelled() {
            return Err(MeasureError::Cancelled);
        }
    }
    drop(stream);
    backend.publish_counts();
    Ok((pages, sum))
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
            let (states, results) = concurrently(states.clone(), states, work);
            assert!(states.into_iter().eq((0..count).map(|number| number + 100)));
            assert!(results.expect("done").into_iter().eq((0..count).map(|number| number * 10)));
        }
    }

    #[test]
    fn an_error_or_panic_of_one_session_is_the_result_and_no_other_state_is_lost() {
        let work = |_: &mut u32, part: u32| match part {
            1 => Err(MeasureError::Cancelled),
            2 => panic!("this panic is part of the test"),
            part => Ok(part),
        };
        for (parts, expected) in [(vec![1], 1), (vec![0, 1, 3], 3), (vec![3, 0, 1, 2], 3)] {
            let states = parts.clone();
            let (states, failed) = concurrently(states, parts, work);
            assert!(matches!(failed, Err(MeasureError::Cancelled)), "{states:?}");
            assert_eq!(states.len(), expected);
        }
        let (states, failed) = concurrently(vec![7, 8], vec![0, 2], work);
        assert!(matches!(failed, Err(MeasureError::Thread(_))), "{failed:?}");
        assert_eq!(states, [7]);
        // A state without a part stays.
        let (states, done) = concurrently(vec![7, 8, 9], vec![0, 3], work);
        assert!(states == [7, 8, 9] && done.expect("done") == [0, 3]);
    }
}
