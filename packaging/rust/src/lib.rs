//! [reheap](crate) is a memory allocator for Linux and Windows: a global allocator for the whole program, and beside it
//! heaps of your own, limits, tags, statistics and profiles.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: reheap::Reheap = reheap::Reheap;
//!
//! fn main() {
//!     let words = vec![String::from("served"), String::from("by reheap")];
//!     assert!(reheap::owns(words.as_ptr()));
//! }
//! ```
//!
//! Everything here also works without the first two lines: the program's own allocator is then another, and what these
//! functions count is what goes through [`Heap`] and the other users of the library.
//!
//! # Features
//!
//! * `std`, on by default: [`Error`] is a `std::error::Error`. Without it the crate needs `core` and `alloc`.
//! * `hardened`: the hardened build. Misuse of memory ends the process with a message, and what is freed is kept from use
//!   for a while.
//! * `serde`: the statistics are `serde::Serialize`.
//!
//! # What may go wrong
//!
//! The allocator ends the process, with a message on standard error, when a block is freed twice or was never made; safe
//! code does neither. When memory runs out it gives null, and what Rust makes of it follows: collections call
//! `handle_alloc_error`.
#![no_std]
#![deny(missing_docs, unsafe_op_in_unsafe_fn)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod block;
mod ffi;
mod heap;
mod limit;
pub mod profile;
mod stats;
mod tag;
mod text;

pub use heap::{AnyThread, BoundHeap, Heap, HeapBox, HeapStats, InMemory, OneThread};
pub use limit::{limits, on_soft_limit, set_limits, trim, Limits, SoftLimitFn};
pub use stats::{report_json, stats, stats_json, Stats};
pub use tag::{tag_stats, Tag, TagScope, TagStats};

use block::Source;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;
use core::fmt;

/// The allocator, for `#[global_allocator]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reheap;

impl Source for Reheap {
    #[inline]
    fn malloc(&self, size: usize) -> *mut c_void {
        unsafe { ffi::rh_malloc(size) }
    }
    #[inline]
    fn zeroed(&self, size: usize) -> *mut c_void {
        unsafe { ffi::rh_calloc(1, size) }
    }
    #[inline]
    fn aligned(&self, alignment: usize, size: usize) -> *mut c_void {
        unsafe { ffi::rh_aligned_alloc(alignment, size) }
    }
    #[inline]
    unsafe fn resize(&self, block: *mut c_void, size: usize) -> *mut c_void {
        unsafe { ffi::rh_realloc(block, size) }
    }
    #[inline]
    unsafe fn resize_aligned(&self, block: *mut c_void, layout: Layout, size: usize) -> *mut c_void {
        unsafe { ffi::rh_aligned_realloc(block, layout.align(), size) }
    }
}

// Blocks are aligned as asked, distinct and untouched until they are freed; nothing here unwinds.
unsafe impl GlobalAlloc for Reheap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        block::allocate(self, layout)
    }
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        block::allocate_zeroed(self, layout)
    }
    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { block::free(block, layout) }
    }
    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        unsafe { block::resize(self, block, layout, size) }
    }
}

/// Why something was refused, in a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error(&'static str);

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

#[cfg(feature = "std")]
impl std::error::Error for Error {}

/// Whether `pointer` lies in a block of this library, live or not yet reused. It may be any address.
pub fn owns<T: ?Sized>(pointer: *const T) -> bool {
    unsafe { ffi::rh_owns(pointer as *const c_void) }
}

/// Usable bytes in a block: at least the requested size.
///
/// # Safety
/// `block` is one of this library that has not been freed, or null, which has 0.
pub unsafe fn usable_size(block: *const u8) -> usize {
    unsafe { ffi::rh_usable_size(block as *const c_void) }
}

/// The least usable size that a request of `size` bytes gets.
pub fn good_size(size: usize) -> usize {
    unsafe { ffi::rh_good_size(size) }
}

/// Sets an option by its name without the REHEAP_ prefix, in lower case (`"decay_ms"`), to the text that the environment
/// would have.
///
/// # Errors
/// When the name or value is unknown, or the option can no longer change; a line on standard error says which.
pub fn set_option(name: &str, value: &str) -> Result<(), Error> {
    const ZERO: Error = Error("an option has no zero byte");
    let (name, value) = (text::terminated(name).ok_or(ZERO)?, text::terminated(value).ok_or(ZERO)?);
    match unsafe { ffi::rh_option_set(name.as_ptr(), value.as_ptr()) } {
        true => Ok(()),
        false => Err(Error("the option is unknown, cannot have this value, or can no longer change")),
    }
}

/// The version of the allocator.
pub fn version() -> &'static str {
    unsafe { text::from_c(ffi::rh_version()) }
}
