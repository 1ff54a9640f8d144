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
    /// As `resize`, for a block that must lie where its layout says: resized by the library it might come to lie
    /// anywhere. What fits, and does not waste the half, stays.
    ///
    /// # Safety
    /// As for `resize`; `layout` is the block's.
    unsafe fn resize_aligned(&self, block: *mut c_void, layout: Layout, size: usize) -> *mut c_void {
        let usable = unsafe { ffi::rh_usable_size(block) };
        if size <= usable && size >= usable / 2 {
            return block;
        }
        let moved = self.aligned(layout.align(), size);
        if !moved.is_null() {
            unsafe {
                ptr::copy_nonoverlapping(block as *const u8, moved as *mut u8, layout.size().min(size));
                ffi::rh_free(block);
            }
        }
        moved
    }
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
    let block = block as *mut c_void;
    let resized = match layout.align() {
        0..=ALWAYS => unsafe { source.resize(block, size) },
        _ => unsafe { source.resize_aligned(block, layout, size) },
    };
    resized as *mut u8
}

/// Of one that no heap resized: the hardened build holds the layout against what was asked for last.
///
/// # Safety
/// As for `GlobalAlloc::dealloc`.
pub unsafe fn free(block: *mut u8, layout: Layout) {
    let block = block as *mut c_void;
    match layout.align() {
        0..=ALWAYS => unsafe { ffi::rh_free_sized(block, layout.size()) },
        alignment => unsafe { ffi::rh_free_aligned_sized(block, alignment, layout.size()) },
    }
}
