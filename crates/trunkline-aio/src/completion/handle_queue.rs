//! FIFO queues of handles, as linked lists through one array.
//!
//! A handle is in one queue at most, so a link for each handle is enough for any number of queues.
//! A `VecDeque` for each lane and class would need room for all handles in each of them, because
//! queueing must not allocate.

use crate::tables::class::Class;

/// The end of a list. It can't be a handle's index.
const NONE: u32 = u32::MAX;

/// One queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HandleQueue {
    head: u32,
    tail: u32,
}

/// What the queues know about each handle, by index.
#[derive(Debug)]
pub(crate) struct Links(Box<[Link]>);

#[derive(Debug, Clone, Copy)]
struct Link {
    next: u32,
    class: Class,
}

impl Links {
    pub(crate) fn new(handles: usize) -> Self {
        let link = Link { next: NONE, class: Class::Maintenance };
        Self(vec![link; handles].into_boxed_slice())
    }
}

impl HandleQueue {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE };

    pub(crate) fn is_empty(&self) -> bool {
        self.head == NONE
    }

    pub(crate) fn push_back(&mut self, index: u32, class: Class, links: &mut Links) {
        links.0[index as usize] = Link { next: NONE, class };
        match self.tail {
            NONE => self.head = index,
            tail => links.0[tail as usize].next = index,
        }
        self.tail = index;
    }

    pub(crate) fn push_front(&mut self, index: u32, class: Class, links: &mut Links) {
        links.0[index as usize] = Link { next: self.head, class };
        if self.is_empty() {
            self.tail = index;
        }
        self.head = index;
    }

    /// Takes the handle at the head, and returns its index and class.
    pub(crate) fn pop_front(&mut self, links: &Links) -> Option<(u32, Class)> {
        if self.is_empty() {
            return None;
        }
        let index = self.head;
        let Link { next, class } = links.0[index as usize];
        self.head = next;
        if self.is_empty() {
            self.tail = NONE;
        }
        Some((index, class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_that_share_their_links_keep_their_order() {
        let mut links = Links::new(6);
        let (mut one, mut other) = (HandleQueue::EMPTY, HandleQueue::EMPTY);
        one.push_back(0, Class::Log, &mut links);
        other.push_back(1, Class::LookAhead, &mut links);
        one.push_back(2, Class::Log, &mut links);
        other.push_front(3, Class::Foreground, &mut links);
        one.push_front(4, Class::Eviction, &mut links);
        let all = |queue: &mut HandleQueue, links: &Links| {
            std::iter::from_fn(|| queue.pop_front(links)).collect::<Vec<_>>()
        };
        assert_eq!(all(&mut one, &links), [(4, Class::Eviction), (0, Class::Log), (2, Class::Log)]);
        assert_eq!(all(&mut other, &links), [(3, Class::Foreground), (1, Class::LookAhead)]);
        assert!(one.is_empty() && other.is_empty());
        one.push_front(5, Class::Log, &mut links);
        one.push_back(0, Class::Log, &mut links);
        assert_eq!(all(&mut one, &links), [(5, Class::Log), (0, Class::Log)]);
    }
}
