//! How a `Layout` is asked for: of the library as a whole, and of a heap, by the same rules.

use crate::ffi;
use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr;

/// What every block is aligned to, whatever its size.
const ALWAYS: usize = 16;

/// Who gives blocks. The functions give null when there is no memory, and for alignments past 1 GiB.
pub trait Source {
    fn malloc(&self, size: usize) -> *mut c_void;
    fn zeroed(&self, size: usize) -> *mut c_void;
    fn aligned(&self, alignment: usize, size: usize) -> *mut c_void;
    /// # Safety
    /// `block` is one of this source, and `size` not zero.
    unsafe fn resize(&self, block: *mut c_void, size: usize) -> *mut c_void;
}

pub fn allocate(source: &impl Source, layout: Layout) -> *mut u8 {
    let block = match layout.align() {
        0..=ALWAYS => source.malloc(layout.size()),
        alignment => source.aligned(alignment, layout.size()),
    };
    block as *mut u8
}

pub fn allocate_zeroed(source: &impl Source, layout: Layout) -> *mut u8 {
    if layout.align() <= ALWAYS {
        return source.zeroed(layout.size()) as *mut u8;
    }
    let block = allocate(source, layout);
    if !block.is_null() {
        // Its content is anything: only the function without an alignment knows what is zero already.
        unsafe { ptr::write_bytes(block, 0, layout.size()) };
    }
    block
}

/// # Safety
/// As for `GlobalAlloc::realloc`, of a block of this source.
pub unsafe fn resize(source: &impl Source, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    if layout.align() <= ALWAYS {
        return unsafe { source.resize(block as *mut c_void, size) as *mut u8 };
    }
    // Resized by the library it might come to lie anywhere. What fits, and does not waste the half, stays.
    let usable = unsafe { ffi::rh_usable_size(block as *const c_void) };
    if size <= usable && size >= usable / 2 {
        return block;
    }
    let moved = source.aligned(layout.align(), size) as *mut u8;
    if !moved.is_null() {
        unsafe {
            ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
            ffi::rh_free(block as *mut c_void);
        }
    }
    moved
}
