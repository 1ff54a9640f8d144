//! Heaps apart from the program's.

use crate::block::{self, Source};
use crate::stats::figures;
use crate::{ffi, Error};
use core::alloc::Layout;
use core::ffi::c_void;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};
use core::{fmt, mem};

const OUT_OF_MEMORY: Error = Error("out of memory");

/// Says of a [`Heap`] that all threads may use it; a lock takes them in turn.
#[derive(Debug)]
pub enum AnyThread {}

/// Says of a [`Heap`] that it is bound to the thread that made it, and takes no lock.
#[derive(Debug)]
pub enum OneThread {}

/// Says of a [`Heap`] that all it has lies in memory of the program's, which is lent to it for `'memory`. All threads may
/// use it.
#[derive(Debug)]
pub struct InMemory<'memory> {
    /// Of this lifetime and no other: two heaps never change places where one of them is only lent.
    of: PhantomData<fn(&'memory ()) -> &'memory ()>,
}

/// A heap bound to the thread that made it: as fast as the allocator itself.
pub type BoundHeap = Heap<OneThread>;

/// A heap of its own. Dropped, it frees all its blocks at once, whoever still points to them: what is dereferenced
/// after that is the caller's unsafe code, or borrowed from the heap ([`HeapBox`]).
///
/// # Threads
///
/// A `Heap` is `Send` and `Sync`: the library takes a lock for each operation, and neither a heap nor its blocks belong
/// to a thread. A [`BoundHeap`] is neither, for the library ends a process that allocates from it in another thread. Its
/// blocks may be freed in any thread, so a [`HeapBox`] of it is `Send` where its value is.
///
/// ```
/// let heap = reheap::Heap::new()?;
/// let mut words = heap.boxed([0u32; 1000])?;
/// words[7] = 7;
/// assert_eq!(heap.stats().blocks, 1);
/// # Ok::<(), reheap::Error>(())
/// ```
///
/// What is borrowed from a heap does not outlive it:
///
/// ```compile_fail
/// let heap = reheap::Heap::new().unwrap();
/// let kept = heap.boxed(1).unwrap();
/// drop(heap);
/// assert_eq!(*kept, 1);
/// ```
///
/// A bound heap stays in its thread:
///
/// ```compile_fail
/// let heap = reheap::Heap::bound().unwrap();
/// std::thread::spawn(move || heap.boxed(1).is_ok());
/// ```
pub struct Heap<Of = AnyThread> {
    raw: NonNull<ffi::RhHeap>,
    of: PhantomData<Of>,
}

// The library serialises all operations; see above.
unsafe impl Send for Heap<AnyThread> {}
unsafe impl Sync for Heap<AnyThread> {}
unsafe impl Send for Heap<InMemory<'_>> {}
unsafe impl Sync for Heap<InMemory<'_>> {}

impl Heap<AnyThread> {
    /// A new heap for all threads.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new() -> Result<Self, Error> {
        Self::made(unsafe { ffi::rh_heap_create() })
    }

    /// A new heap for all threads, every byte of which is within reach of a signed 32-bit displacement from `code`: what a
    /// compiler at run time needs for the data of what it makes. Its `size` bytes, bookkeeping included, are address space
    /// reserved no further than 2 GiB away, and committed as they are needed; [`Heap::trim`] gives back what is free. No
    /// block of it is executable. `code` is any address: nothing is read there.
    ///
    /// ```
    /// let code = main as *const ();
    /// let heap = reheap::Heap::near(code, 16 << 20)?;
    /// let constant = heap.boxed(0.5f64)?;
    /// let distance = (&*constant as *const f64 as isize).wrapping_sub(code as isize);
    /// assert!(i32::try_from(distance).is_ok());
    /// # Ok::<(), reheap::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `code` is null, for a size of less than one block or more than 2 GiB, when nothing that large is free there,
    /// when there is no memory, and when there are 1,024 such heaps, of this and the other kind.
    pub fn near<T>(code: *const T, size: usize) -> Result<Self, Error> {
        const REFUSED: Error = Error("no heap of this size can be had near that address");
        Self::known(unsafe { ffi::rh_heap_create_near(code as *const c_void, size) }, REFUSED)
    }
}

impl Heap<InMemory<'static>> {
    /// A heap over memory that is lent to it for good. All that it has lies there, its bookkeeping too (0.5 to 2.5 KiB),
    /// and it asks the OS for nothing. Any alignment will do; a block is 16 bytes longer inside.
    ///
    /// ```
    /// use std::mem::MaybeUninit;
    ///
    /// static mut MEMORY: [MaybeUninit<u8>; 64 * 1024] = [MaybeUninit::uninit(); 64 * 1024];
    ///
    /// // Sound: this runs once, and nothing else names MEMORY.
    /// let heap = reheap::Heap::in_static(unsafe { &mut *std::ptr::addr_of_mut!(MEMORY) })?;
    /// assert_eq!(*heap.boxed(7)?, 7);
    /// # Ok::<(), reheap::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the memory has no room for one block or is longer than 63 GiB, when part of it is another heap's or this
    /// allocator's own (where [`Reheap`](crate::Reheap) is the global allocator, what a `Vec` or `Box` has is), and when
    /// there are 1,024 such heaps, of this and the other kind.
    pub fn in_static(memory: &'static mut [MaybeUninit<u8>]) -> Result<Self, Error> {
        unsafe { Self::over(memory) }
    }
}

impl<'memory> Heap<InMemory<'memory>> {
    /// As [`Heap::in_static`], for memory that is wanted back. [`with_memory`](Heap::with_memory) needs no care.
    ///
    /// # Errors
    /// As for [`Heap::in_static`].
    ///
    /// # Safety
    /// The heap is dropped before the memory is used for anything else: it is neither forgotten nor leaked. The library
    /// keeps an account of it, and looks at it there whenever it looks at all heaps.
    pub unsafe fn over(memory: &'memory mut [MaybeUninit<u8>]) -> Result<Self, Error> {
        const REFUSED: Error = Error("the memory has no room for a heap, or is one's or the allocator's already");
        let start = memory.as_mut_ptr() as *mut c_void;
        Self::known(unsafe { ffi::rh_heap_create_in(start, memory.len()) }, REFUSED)
    }
}

impl Heap<InMemory<'_>> {
    /// Runs `work` with a heap over the memory, as [`Heap::in_static`], which is gone before this returns.
    ///
    /// ```
    /// use std::mem::MaybeUninit;
    ///
    /// let mut memory = [MaybeUninit::uninit(); 64 * 1024];
    /// let sum = reheap::Heap::with_memory(&mut memory, |heap| {
    ///     let numbers = heap.boxed([1u32, 2, 3])?;
    ///     Ok::<u32, reheap::Error>(numbers.iter().sum())
    /// })??;
    /// assert_eq!(sum, 6);
    /// # Ok::<(), reheap::Error>(())
    /// ```
    ///
    /// Nothing of it gets out:
    ///
    /// ```compile_fail
    /// let mut memory = [std::mem::MaybeUninit::uninit(); 64 * 1024];
    /// let kept = reheap::Heap::with_memory(&mut memory, |heap| heap.boxed(1).unwrap()).unwrap();
    /// ```
    ///
    /// nor does the heap, in the place of another one:
    ///
    /// ```compile_fail
    /// let mut one = [std::mem::MaybeUninit::uninit(); 64 * 1024];
    /// let mut other = [std::mem::MaybeUninit::uninit(); 64 * 1024];
    /// let mut outer = unsafe { reheap::Heap::over(&mut one) }.unwrap();
    /// reheap::Heap::with_memory(&mut other, |heap| std::mem::swap(heap, &mut outer)).unwrap();
    /// ```
    ///
    /// # Errors
    /// As for [`Heap::in_static`]; then `work` does not run.
    pub fn with_memory<R>(
        memory: &mut [MaybeUninit<u8>],
        work: impl for<'lent> FnOnce(&mut Heap<InMemory<'lent>>) -> R,
    ) -> Result<R, Error> {
        // Dropped here whatever `work` does: it has but a reference, and none of another heap of this lifetime.
        let mut heap = unsafe { Heap::over(memory)? };
        Ok(work(&mut heap))
    }
}

impl Heap<OneThread> {
    /// A new heap for the calling thread.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn bound() -> Result<Self, Error> {
        Self::made(unsafe { ffi::rh_heap_create_bound() })
    }
}

impl<Of> Heap<Of> {
    fn made(raw: *mut ffi::RhHeap) -> Result<Self, Error> {
        Self::known(raw, OUT_OF_MEMORY)
    }

    fn known(raw: *mut ffi::RhHeap, refused: Error) -> Result<Self, Error> {
        Ok(Heap { raw: NonNull::new(raw).ok_or(refused)?, of: PhantomData })
    }

    /// A block for `layout`, which may be of size zero.
    ///
    /// # Errors
    /// When there is no memory, the heap's limit refuses, or the alignment is more than 1 GiB.
    pub fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, Error> {
        NonNull::new(block::allocate(self, layout)).ok_or(OUT_OF_MEMORY)
    }

    /// The same, of zeros.
    ///
    /// # Errors
    /// As for [`Heap::alloc`].
    pub fn alloc_zeroed(&self, layout: Layout) -> Result<NonNull<u8>, Error> {
        NonNull::new(block::allocate_zeroed(self, layout)).ok_or(OUT_OF_MEMORY)
    }

    /// Frees a block. In any thread: also one that a bound heap is not of.
    ///
    /// # Safety
    /// It is a block of this heap that has not been freed, and is not used any more.
    pub unsafe fn dealloc(&self, block: NonNull<u8>) {
        unsafe { ffi::rh_free(block.as_ptr() as *mut c_void) }
    }

    /// Resizes a block within the heap, to `size` bytes at the same alignment. It may move; the bytes up to the lesser size
    /// stay.
    ///
    /// # Errors
    /// As for [`Heap::alloc`]; then the block is as it was.
    ///
    /// # Safety
    /// It is a block of this heap that has not been freed, `layout` is what it was made or last resized for, and the
    /// rounded size is no more than `isize::MAX`.
    pub unsafe fn realloc(&self, block: NonNull<u8>, layout: Layout, size: usize) -> Result<NonNull<u8>, Error> {
        // A size of zero would free it.
        let moved = unsafe { block::resize(self, block.as_ptr(), layout, size.max(1)) };
        NonNull::new(moved).ok_or(OUT_OF_MEMORY)
    }

    /// Moves a value into the heap.
    ///
    /// # Errors
    /// As for [`Heap::alloc`]; the value is dropped.
    pub fn boxed<T>(&self, value: T) -> Result<HeapBox<'_, T>, Error> {
        let place = self.alloc(Layout::new::<T>())?.cast::<T>();
        unsafe { place.as_ptr().write(value) };
        Ok(HeapBox { place, of: PhantomData })
    }

    /// Frees all blocks of the heap at once, without dropping what is in them.
    pub fn reset(&mut self) {
        unsafe { ffi::rh_heap_reset(self.raw.as_ptr()) }
    }

    /// Has the heap give up what of it is free: others may use it then, and it goes back to the OS in its time, or by
    /// [`trim`](crate::trim) at once. Returns how many bytes less the heap holds; of one of [`Heap::near`], how many went
    /// back to the OS; of one over memory, 0.
    pub fn trim(&self) -> usize {
        unsafe { ffi::rh_heap_trim(self.raw.as_ptr()) }
    }

    /// Limits what the heap holds, in bytes: its slabs (16 KiB and more each) and large blocks; of one over memory or near
    /// code its blocks, with 16 bytes beside each. 0 is no limit. What would lead beyond it is refused; what is held already
    /// may be more.
    pub fn limit(&self, hard: usize) {
        unsafe { ffi::rh_heap_limit(self.raw.as_ptr(), hard) }
    }

    /// What the heap holds.
    pub fn stats(&self) -> HeapStats {
        HeapStats::filled(|stats| unsafe { ffi::rh_heap_stats_get(self.raw.as_ptr(), stats) })
    }
}

impl<Of> Source for Heap<Of> {
    fn malloc(&self, size: usize) -> *mut c_void {
        unsafe { ffi::rh_heap_malloc(self.raw.as_ptr(), size) }
    }
    fn zeroed(&self, size: usize) -> *mut c_void {
        unsafe { ffi::rh_heap_calloc(self.raw.as_ptr(), 1, size) }
    }
    fn aligned(&self, alignment: usize, size: usize) -> *mut c_void {
        unsafe { ffi::rh_heap_aligned_alloc(self.raw.as_ptr(), alignment, size) }
    }
    unsafe fn resize(&self, block: *mut c_void, size: usize) -> *mut c_void {
        unsafe { ffi::rh_heap_realloc(self.raw.as_ptr(), block, size) }
    }
}

impl<Of> Drop for Heap<Of> {
    fn drop(&mut self) {
        unsafe { ffi::rh_heap_destroy(self.raw.as_ptr()) }
    }
}

impl<Of> fmt::Debug for Heap<Of> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stats().fmt(out)
    }
}

figures! {
    /// What a heap holds, in bytes; from [`Heap::stats`].
    HeapStats {
        /// In blocks handed out, at usable sizes; those kept at hand for the next requests count.
        in_use,
        /// How many blocks that is.
        blocks,
        /// In slabs and large blocks; of a heap over memory or near code, in blocks with 16 bytes beside each.
        held,
        /// The most there was of it.
        held_peak,
        /// 0 is none.
        limit,
        /// How many requests the limit refused.
        refused,
    }
}

/// A value in a [`Heap`], dropped and freed with this. Forgotten, it is freed with the heap, and never dropped.
pub struct HeapBox<'heap, T> {
    place: NonNull<T>,
    of: PhantomData<(&'heap (), T)>,
}

// It owns its value alone, and any thread may free a block.
unsafe impl<T: Send> Send for HeapBox<'_, T> {}
unsafe impl<T: Sync> Sync for HeapBox<'_, T> {}

impl<T> HeapBox<'_, T> {
    /// Takes the value out, and frees its block.
    pub fn into_inner(self) -> T {
        let boxed = ManuallyDrop::new(self);
        unsafe {
            let value = ptr::read(boxed.place.as_ptr());
            ffi::rh_free(boxed.place.as_ptr() as *mut c_void);
            value
        }
    }
}

impl<T> Deref for HeapBox<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        unsafe { self.place.as_ref() }
    }
}

impl<T> DerefMut for HeapBox<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        unsafe { self.place.as_mut() }
    }
}

impl<T: fmt::Debug> fmt::Debug for HeapBox<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(out)
    }
}

/// The block goes back even when the value's own end panics.
struct Freed(*mut c_void);

impl Drop for Freed {
    fn drop(&mut self) {
        unsafe { ffi::rh_free(self.0) }
    }
}

impl<T> Drop for HeapBox<'_, T> {
    fn drop(&mut self) {
        let _freed = Freed(self.place.as_ptr() as *mut c_void);
        if mem::needs_drop::<T>() {
            unsafe { ptr::drop_in_place(self.place.as_ptr()) };
        }
    }
}
