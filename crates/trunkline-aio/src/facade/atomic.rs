//! Atomics: those of std, those of loom, or wrappers around std's that add a switch point before
//! each operation.
//!
//! The wrappers used in the `sched` build don't change the memory ordering of an operation. They
//! only give the seeded scheduler a chance to run another thread between any two atomic operations,
//! because that is the only place where the interleaving can make a difference. The scheduler runs
//! only one thread at a time, so these runs are sequentially consistent. To explore weaker memory
//! orderings, we use loom.

pub use std::sync::atomic::Ordering;

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

#[cfg(all(not(feature = "sched"), not(loom)))]
pub use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

#[cfg(all(feature = "sched", not(loom)))]
pub use wrapped::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

#[cfg(all(feature = "sched", not(loom)))]
mod wrapped {
    use crate::facade::sched;
    use std::sync::atomic::Ordering;

    macro_rules! common {
        ($name:ident, $value:ty) => {
            /// See the type of the same name in [`std::sync::atomic`]; each operation is a
            /// switch point.
            #[derive(Debug, Default, zerocopy::FromZeros)]
            #[repr(transparent)]
            pub struct $name(std::sync::atomic::$name);

            #[expect(missing_docs, reason = "the same operations as in std::sync::atomic")]
            impl $name {
                pub const fn new(value: $value) -> Self {
                    Self(std::sync::atomic::$name::new(value))
                }
                pub fn as_ptr(&self) -> *mut $value {
                    self.0.as_ptr()
                }
                pub fn load(&self, order: Ordering) -> $value {
                    sched::point();
                    self.0.load(order)
                }
                pub fn store(&self, value: $value, order: Ordering) {
                    sched::point();
                    self.0.store(value, order);
                }
                pub fn swap(&self, value: $value, order: Ordering) -> $value {
                    sched::point();
                    self.0.swap(value, order)
                }
                pub fn compare_exchange(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    sched::point();
                    self.0.compare_exchange(current, new, success, failure)
                }
                pub fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                    sched::point();
                    self.0.fetch_or(value, order)
                }
                pub fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                    sched::point();
                    self.0.fetch_and(value, order)
                }
            }
        };
    }

    macro_rules! numeric {
        ($name:ident, $value:ty) => {
            common!($name, $value);
            #[expect(missing_docs, reason = "the same operations as in std::sync::atomic")]
            impl $name {
                pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                    sched::point();
                    self.0.fetch_add(value, order)
                }
                pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                    sched::point();
                    self.0.fetch_sub(value, order)
                }
                pub fn fetch_max(&self, value: $value, order: Ordering) -> $value {
                    sched::point();
                    self.0.fetch_max(value, order)
                }
                pub fn fetch_min(&self, value: $value, order: Ordering) -> $value {
                    sched::point();
                    self.0.fetch_min(value, order)
                }
            }
        };
    }

    common!(AtomicBool, bool);
    numeric!(AtomicU8, u8);
    numeric!(AtomicU32, u32);
    numeric!(AtomicU64, u64);
    numeric!(AtomicI64, i64);
    numeric!(AtomicUsize, usize);
}
