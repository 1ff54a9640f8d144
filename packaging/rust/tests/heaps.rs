//! Heaps beside another global allocator: here the system's.

use reheap::{Heap, HeapBox};
use std::alloc::Layout;
use std::cell::Cell;
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

#[cfg(feature = "serde")]
#[test]
fn statistics_are_serialised() {
    fn all<T: serde::Serialize>(_: T) {}
    let heap = Heap::new().unwrap();
    all((heap.stats(), reheap::stats(), reheap::limits(), reheap::tag_stats()[0]));
}
