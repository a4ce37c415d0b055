//! The wakers of one session's polled waits. Each wait has its own place, so that a task that polls
//! doesn't replace the waker of another task of the same session.
//!
//! An event doesn't say what has happened, so a signal calls every registered waker, and each task
//! tests its own condition again. If one of these tasks drops its wait instead, the others don't
//! miss anything. A signal comes here only if a waker is registered (`lock_free/event.rs`), because
//! most sessions are never polled and shouldn't have to take this lock.
//!
//! Only [`Wakers::open`], which a new wait calls, allocates memory. Registering a waker and waking
//! never allocate. A wait can't fail to get a place when it registers its waker, because the place
//! belongs to it until it calls [`Wakers::close`].

use crate::facade::Mutex;
use std::task::Waker;

/// Number of places that we allocate when the first wait of a session is opened.
const PLACES_FIRST: usize = 4;

/// The place of one polled wait.
#[derive(Debug)]
enum Place {
    /// Belongs to no wait.
    Free,
    /// Belongs to a wait that has no waker registered.
    Idle,
    /// Belongs to a wait that has registered this waker.
    Registered(Waker),
}

impl Place {
    fn is_registered(&self) -> bool {
        matches!(self, Place::Registered(_))
    }
}

/// A session's places for wakers.
#[derive(Debug)]
pub(crate) struct Wakers {
    places: Mutex<Places>,
}

#[derive(Debug)]
struct Places {
    list: Vec<Place>,
    /// How many places have a waker registered.
    registered: usize,
}

impl Places {
    /// Changes a place, and returns what it was before. The caller must drop that outside the lock,
    /// because dropping a waker runs code we don't control, such as the destructor of a task.
    fn replace(&mut self, at: usize, new: Place) -> Place {
        self.registered += usize::from(new.is_registered());
        let old = std::mem::replace(&mut self.list[at], new);
        self.registered -= usize::from(old.is_registered());
        old
    }
}

impl Wakers {
    pub(crate) fn new() -> Self {
        Self { places: Mutex::new(Places { list: Vec::new(), registered: 0 }) }
    }

    /// Reserves a place for a new wait.
    pub(crate) fn open(&self) -> u32 {
        // Completing threads take this lock, so we must not allocate or free memory under it.
        let mut spare: Vec<Place> = Vec::new();
        loop {
            let taken = {
                let mut places = self.places.lock();
                let list = &mut places.list;
                if let Some(free) = list.iter().position(|place| matches!(place, Place::Free)) {
                    list[free] = Place::Idle;
                    return free as u32;
                }
                let taken = list.len();
                if taken < spare.capacity() {
                    spare.append(list);
                    std::mem::swap(list, &mut spare);
                }
                if taken < list.capacity() {
                    list.push(Place::Idle);
                    return taken as u32;
                }
                taken
            };
            spare = Vec::with_capacity((2 * taken).max(PLACES_FIRST));
        }
    }

    /// Returns the place of a wait that has ended.
    pub(crate) fn close(&self, place: u32) {
        let old = self.places.lock().replace(place as usize, Place::Free);
        drop(old);
    }

    /// Stores the waker of a wait, and drops an older one of the same wait.
    pub(crate) fn register(&self, place: u32, waker: &Waker) {
        let same = match &self.places.lock().list[place as usize] {
            Place::Registered(old) => old.will_wake(waker),
            Place::Free | Place::Idle => false,
        };
        if !same {
            // Cloning a waker runs code we don't control too, so we do it before we take the lock.
            let new = Place::Registered(waker.clone());
            let old = self.places.lock().replace(place as usize, new);
            drop(old);
        }
    }

    /// Takes the registered wakers out, one after the other, and passes each of them to `each`
    /// outside the lock. Calls `none_left` under the lock as soon as no waker is registered.
    ///
    /// Until then, another signal must also look here. If a waker takes a long time or panics, the
    /// other signal calls the remaining ones.
    pub(crate) fn take_each(&self, none_left: impl Fn(), each: impl Fn(Waker)) {
        let mut from = 0;
        while let Some((at, waker)) = self.take(from, &none_left) {
            each(waker);
            // A task may register again before its waker returns. We must not call that waker, or
            // we might never get to the end.
            from = at + 1;
        }
    }

    /// Takes the first waker at or after `from`.
    fn take(&self, from: usize, none_left: impl Fn()) -> Option<(usize, Waker)> {
        let mut places = self.places.lock();
        let found = places.list.iter().skip(from).position(Place::is_registered);
        let taken = found.and_then(|found| match places.replace(from + found, Place::Idle) {
            Place::Registered(waker) => Some((from + found, waker)),
            Place::Free | Place::Idle => None,
        });
        if places.registered == 0 {
            none_left();
        }
        taken
    }
}
