//! Stack for recursion over trees, which can be as deep as the statement that they come from.

/// When less than this is left of the stack, a walk continues on a new one.
const STACK_RED_ZONE: usize = 64 << 10;

/// The size of a new stack.
const STACK_SIZE: usize = 1 << 20;

/// Calls `recurse` with enough stack.
pub fn with_stack<R>(recurse: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(STACK_RED_ZONE, STACK_SIZE, recurse)
}

/// The stack that one level of a tree takes at most, in bytes: executing a subquery takes most, about
/// 30 KiB without optimization.
const BYTES_PER_LEVEL: usize = 40 << 10;

/// Trees that nest less than this are processed on any stack.
const NESTING_SMALL: usize = 64;

/// Calls `work` with enough stack for a tree that nests this deep, whatever `work` does with it. Code
/// that isn't ours, such as derived implementations of `Clone` and destructors, recurses without asking
/// for more. Memory of a stack that isn't touched isn't used.
pub fn with_stack_for<R>(nesting: usize, work: impl FnOnce() -> R) -> R {
    if nesting < NESTING_SMALL {
        return work();
    }
    let bytes = STACK_SIZE + nesting * BYTES_PER_LEVEL;
    stacker::maybe_grow(bytes, bytes, work)
}
