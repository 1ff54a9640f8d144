//! Heaps beside another global allocator: here the system's.

use reheap::{Heap, HeapBox};
use std::alloc::Layout;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::rc::Rc;
use std::thread;

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

fn is_send<T: Send>(_: &T) {}

#[test]
fn the_program_keeps_its_allocator() {
    let block = Box::new(1);
    assert!(!reheap::owns(&*block));
    assert!(reheap::owns(&*Heap::new().unwrap().boxed(1).unwrap()));
}

#[test]
fn blocks_of_all_kinds() {
    let heap = Heap::new().unwrap();
    for align in [1, 16, 64, 4096, 2 << 20] {
        for size in [0, 1, 100, 40_000, 1 << 20] {
            let block = heap.alloc(layout(size, align)).unwrap();
            let zeros = heap.alloc_zeroed(layout(size, align)).unwrap();
            assert_eq!((block.as_ptr() as usize % align, zeros.as_ptr() as usize % align), (0, 0));
            assert!((0..size).all(|at| unsafe { *zeros.as_ptr().add(at) } == 0));
            unsafe {
                block.as_ptr().write_bytes(7, size);
                let longer = heap.realloc(block, layout(size, align), size * 3 + 1).unwrap();
                assert_eq!(longer.as_ptr() as usize % align, 0);
                assert!((0..size).all(|at| *longer.as_ptr().add(at) == 7));
                heap.dealloc(longer);
                // Not a free: there is a block to be freed after it.
                let none = heap.realloc(zeros, layout(size, align), 0).unwrap();
                heap.dealloc(none);
            }
        }
    }
    assert!(heap.alloc(layout(isize::MAX as usize, 1)).is_err());
    assert_eq!(heap.alloc(layout(1, 1 << (usize::BITS - 2))).unwrap_err().to_string(), "out of memory");
}

#[test]
fn a_heap_outlives_the_thread_that_made_it() {
    let heap = thread::spawn(|| {
        let heap = Heap::new().unwrap();
        heap.alloc(layout(1000, 8)).unwrap();
        heap
    })
    .join()
    .unwrap();
    let after = heap.boxed([7u64; 100]).unwrap();
    assert_eq!((after[99], heap.stats().blocks), (7, 2));
}

#[test]
fn all_threads_use_one_heap() {
    let heap = Heap::new().unwrap();
    thread::scope(|scope| {
        for number in 0..4u64 {
            let heap = &heap;
            scope.spawn(move || {
                let mut kept: Vec<HeapBox<[u64; 16]>> = Vec::new();
                for round in 0..5000 {
                    kept.push(heap.boxed([number; 16]).unwrap());
                    if round % 3 != 0 {
                        assert_eq!(kept.swap_remove(kept.len() / 2)[15], number);
                    }
                }
            });
        }
    });
    // What a thread frees of others' blocks goes back in batches of 64 KiB at most.
    assert!(heap.stats().in_use <= 4 * 65_536, "{heap:?}");
}

#[test]
fn a_bound_heaps_blocks_are_freed_anywhere() {
    let heap = Heap::bound().unwrap();
    let here = heap.boxed(1).unwrap();
    let there = heap.boxed(2).unwrap();
    is_send(&there);
    thread::scope(|scope| scope.spawn(move || assert_eq!(there.into_inner(), 2)).join().unwrap());
    assert_eq!(*here, 1);
}

#[test]
fn values_are_dropped_once() {
    struct Counted(Rc<Cell<u32>>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let drops = Rc::new(Cell::new(0));
    let heap = Heap::new().unwrap();
    drop(heap.boxed(Counted(drops.clone())).unwrap());
    assert_eq!(drops.get(), 1);
    let out = heap.boxed(Counted(drops.clone())).unwrap().into_inner();
    assert_eq!((drops.get(), heap.stats().blocks), (1, 0));
    drop(out);
    std::mem::forget(heap.boxed(Counted(drops.clone())).unwrap());
    drop(heap);
    assert_eq!(drops.get(), 2);
}

#[test]
fn a_panicking_drop_frees_its_block() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new(1));
        }
    }
    let heap = Heap::new().unwrap();
    let place = heap.boxed((Panics, [0u8; 64])).unwrap();
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(place))).is_err());
    assert_eq!(heap.stats().blocks, 0);
}

#[test]
fn reset_frees_all_and_goes_on() {
    let mut heap = Heap::new().unwrap();
    for size in 1..2000 {
        heap.alloc(layout(size * 20, 8)).unwrap();
    }
    heap.reset();
    assert_eq!(heap.stats().in_use, 0);
    assert_eq!(*heap.boxed(5).unwrap(), 5);
}

#[test]
fn a_heaps_limit_refuses() {
    let heap = Heap::new().unwrap();
    heap.limit(1 << 20);
    assert!(heap.alloc(layout(2 << 20, 1)).is_err());
    assert!(heap.boxed([0u8; 1000]).is_ok());
    let stats = heap.stats();
    assert!(stats.limit == 1 << 20 && stats.refused >= 1, "{stats:?}");
    assert!(heap.alloc_zeroed(layout(2 << 20, 4096)).is_err());
    heap.limit(0);
    assert!(heap.alloc(layout(2 << 20, 1)).is_ok());
}

type Memory = [MaybeUninit<u8>; 64 * 1024];

fn unused() -> Memory {
    [MaybeUninit::uninit(); 64 * 1024]
}

fn lies_in(memory: &std::ops::Range<*const MaybeUninit<u8>>, block: *const u8) -> bool {
    memory.contains(&(block as *const MaybeUninit<u8>))
}

#[test]
fn a_heap_over_memory_has_all_there() {
    let mut memory = unused();
    let place = memory.as_ptr_range();
    for _ in 0..3 {
        let seen = Heap::with_memory(&mut memory, |heap| {
            let mut kept = Vec::new();
            while let Ok(block) = heap.boxed([7u8; 100]) {
                assert!(lies_in(&place, block.as_ptr()));
                kept.push(block);
            }
            assert!(kept.iter().all(|block| **block == [7; 100]));
            let seen = kept.len();
            drop(kept);
            assert_eq!((heap.stats().blocks, heap.trim()), (0, 0));
            heap.alloc(layout(1000, 4096)).unwrap();
            heap.reset();
            assert_eq!(heap.stats().blocks, 0);
            seen
        });
        assert!(seen.unwrap() > 400);
        memory.fill(MaybeUninit::new(0xFF)); // it is the program's again
    }
}

#[test]
fn memory_comes_back_when_the_work_panics() {
    let mut memory = unused();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        Heap::with_memory(&mut memory, |heap| {
            heap.alloc(layout(100, 8)).unwrap();
            std::panic::resume_unwind(Box::new(1));
        })
    }));
    assert!(caught.is_err());
    assert!(Heap::with_memory(&mut memory, |heap| heap.stats().blocks == 0).unwrap());
}

#[test]
fn a_heap_over_memory_is_of_all_threads() {
    let mut memory = unused();
    let heap = unsafe { Heap::over(&mut memory) }.unwrap();
    let here = heap.boxed(1u64).unwrap();
    thread::scope(|scope| {
        for number in 0..3u64 {
            let heap = &heap;
            scope.spawn(move || (0..2000).all(|_| heap.boxed([number; 8]).unwrap()[7] == number));
        }
    });
    assert_eq!((*here, heap.stats().blocks), (1, 1));
    let moved = thread::spawn(|| Heap::in_static(Box::leak(Box::new(unused()))).unwrap()).join().unwrap();
    assert_eq!(*moved.boxed(2).unwrap(), 2);
}

#[test]
fn what_is_no_memory_for_a_heap_is_refused() {
    let refused = |memory: &mut [MaybeUninit<u8>]| Heap::with_memory(memory, |_| ()).unwrap_err().to_string();
    assert!(refused(&mut []).contains("no room"));
    assert!(refused(&mut [MaybeUninit::uninit(); 64]).contains("no room"));
    let owner = Heap::new().unwrap();
    let block = owner.alloc(layout(64 * 1024, 16)).unwrap();
    let taken = unsafe { std::slice::from_raw_parts_mut(block.as_ptr() as *mut MaybeUninit<u8>, 64 * 1024) };
    assert!(refused(taken).contains("already"));
}

#[test]
fn a_heap_near_code_is_within_reach() {
    let code = lies_in as *const ();
    let heap = Heap::near(code, 64 << 20).unwrap();
    let blocks: Vec<_> = (0..40).map(|_| heap.alloc_zeroed(layout(1 << 20, 64)).unwrap()).collect();
    for block in &blocks {
        let distance = (block.as_ptr() as isize).wrapping_sub(code as isize);
        assert!(i32::try_from(distance).is_ok());
        unsafe { block.as_ptr().write_bytes(1, 1 << 20) };
    }
    assert!(heap.alloc(layout(64 << 20, 1)).is_err());
    assert_eq!(heap.stats().blocks, 40);
    for block in blocks {
        unsafe { heap.dealloc(block) };
    }
    assert!(heap.trim() >= 30 << 20);
    assert!(Heap::near(code, 0).is_err());
    assert!(Heap::near(std::ptr::null::<()>(), 1 << 20).is_err());
}

#[cfg(feature = "serde")]
#[test]
fn statistics_are_serialised() {
    fn all<T: serde::Serialize>(_: T) {}
    let heap = Heap::new().unwrap();
    all((heap.stats(), reheap::stats(), reheap::limits(), reheap::tag_stats()[0]));
}
