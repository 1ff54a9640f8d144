//! reheap.h, as far as the crate uses it: the names and order there are the names and order here.

use core::ffi::c_void;

/// What the C header calls `char`, where only bytes matter.
pub type Char = u8;

/// An `rh_heap`: only ever behind a pointer.
#[repr(C)]
pub struct RhHeap {
    _private: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct RhTagStats {
    pub struct_size: usize,
    pub name: *const Char,
    pub in_use: usize,
    pub blocks: usize,
    pub held: usize,
    pub held_peak: usize,
    pub limit: usize,
    pub refused: usize,
}

pub type RhTag = u32;
pub type RhLimitFn = Option<extern "C" fn(held: usize, soft: usize)>;
pub type RhWriteFn = unsafe extern "C" fn(text: *const Char, length: usize, context: *mut c_void);

extern "C" {
    pub fn rh_malloc(size: usize) -> *mut c_void;
    pub fn rh_calloc(count: usize, size: usize) -> *mut c_void;
    pub fn rh_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    pub fn rh_aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    pub fn rh_aligned_realloc(block: *mut c_void, alignment: usize, size: usize) -> *mut c_void;
    pub fn rh_free(block: *mut c_void);
    pub fn rh_free_sized(block: *mut c_void, size: usize);
    pub fn rh_free_aligned_sized(block: *mut c_void, alignment: usize, size: usize);
    pub fn rh_usable_size(block: *const c_void) -> usize;
    pub fn rh_good_size(size: usize) -> usize;
    pub fn rh_owns(pointer: *const c_void) -> bool;

    pub fn rh_heap_create() -> *mut RhHeap;
    pub fn rh_heap_create_bound() -> *mut RhHeap;
    pub fn rh_heap_create_in(memory: *mut c_void, size: usize) -> *mut RhHeap;
    pub fn rh_heap_create_near(code: *const c_void, size: usize) -> *mut RhHeap;
    pub fn rh_heap_reset(heap: *mut RhHeap);
    pub fn rh_heap_destroy(heap: *mut RhHeap);
    pub fn rh_heap_malloc(heap: *mut RhHeap, size: usize) -> *mut c_void;
    pub fn rh_heap_calloc(heap: *mut RhHeap, count: usize, size: usize) -> *mut c_void;
    pub fn rh_heap_aligned_alloc(heap: *mut RhHeap, alignment: usize, size: usize) -> *mut c_void;
    pub fn rh_heap_realloc(heap: *mut RhHeap, block: *mut c_void, size: usize) -> *mut c_void;
    pub fn rh_heap_trim(heap: *mut RhHeap) -> usize;
    pub fn rh_heap_limit(heap: *mut RhHeap, hard: usize);
    pub fn rh_heap_stats_get(heap: *mut RhHeap, stats: *mut crate::HeapStats) -> bool;

    pub fn rh_tag_create(name: *const Char) -> RhTag;
    pub fn rh_tag_push(tag: RhTag) -> bool;
    pub fn rh_tag_pop();
    pub fn rh_tag_current() -> RhTag;
    pub fn rh_tag_limit(tag: RhTag, hard: usize) -> bool;
    pub fn rh_tag_stats_get(first: RhTag, stats: *mut RhTagStats, count: usize) -> usize;

    pub fn rh_trim() -> usize;
    pub fn rh_limit_set(soft: usize, hard: usize) -> bool;
    pub fn rh_limit_get(limit: *mut crate::Limits) -> bool;
    pub fn rh_limit_notify(call: RhLimitFn) -> RhLimitFn;
    pub fn rh_stats_get(stats: *mut crate::Stats) -> bool;
    pub fn rh_stats_json(write: RhWriteFn, context: *mut c_void);
    pub fn rh_report_json(write: RhWriteFn, context: *mut c_void);
    pub fn rh_option_set(name: *const Char, value: *const Char) -> bool;
    pub fn rh_profile_start(every_bytes: u64) -> bool;
    pub fn rh_profile_stop();
    pub fn rh_profile_write(path: *const Char) -> bool;
    pub fn rh_version() -> *const Char;
}
