//! The global allocator, asked for strange things.

use std::alloc::{alloc, alloc_zeroed, dealloc, realloc, Layout};
use std::process::{Command, Output};
use std::sync::mpsc::channel;
use std::thread;

#[global_allocator]
static ALLOCATOR: reheap::Reheap = reheap::Reheap;

const ALIGNMENTS: [usize; 8] = [1, 8, 16, 32, 64, 4096, 65536, 2 << 20];
const SIZES: [usize; 9] = [1, 15, 16, 17, 1000, 1024, 32768, 32769, 300_000];

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

/// The same for the same address and place in it, and not the same in a neighbour.
fn fill(block: *mut u8, size: usize) {
    for at in 0..size {
        unsafe { block.add(at).write((at * 7 + size) as u8) };
    }
}

fn is_filled(block: *const u8, made_for: usize, up_to: usize) -> bool {
    (0..up_to).all(|at| unsafe { block.add(at).read() } == (at * 7 + made_for) as u8)
}

#[test]
fn it_is_the_crates_version() {
    assert_eq!(reheap::version(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn blocks_are_aligned_as_asked_and_ours() {
    for align in ALIGNMENTS {
        for size in SIZES {
            let of = layout(size, align);
            let blocks: Vec<*mut u8> = (0..3).map(|_| unsafe { alloc(of) }).collect();
            for &block in &blocks {
                assert_eq!(block as usize % align, 0, "size {size}");
                assert!(reheap::owns(block));
                assert!(unsafe { reheap::usable_size(block) } >= size);
                fill(block, size);
            }
            for &block in &blocks {
                assert!(is_filled(block, size, size));
                unsafe { dealloc(block, of) };
            }
        }
    }
}

#[test]
fn zeroed_blocks_are_zero_where_others_were_before() {
    for align in ALIGNMENTS {
        for size in SIZES {
            let of = layout(size, align);
            for _ in 0..3 {
                let block = unsafe { alloc_zeroed(of) };
                assert_eq!(block as usize % align, 0);
                assert!((0..size).all(|at| unsafe { block.add(at).read() } == 0), "size {size}, alignment {align}");
                fill(block, size);
                unsafe { dealloc(block, of) };
            }
        }
    }
}

#[test]
fn resized_blocks_keep_their_alignment_and_content() {
    for align in ALIGNMENTS {
        let mut size = 3;
        let mut block = unsafe { alloc(layout(size, align)) };
        // Up by odd steps and down again, past the sizes where blocks change their kind.
        for next in [5, 40, 41, 700, 33_001, 250_007, 900_001, 64, 9, 1] {
            fill(block, size);
            block = unsafe { realloc(block, layout(size, align), next) };
            assert_eq!(block as usize % align, 0, "to {next}");
            assert!(is_filled(block, size, size.min(next)), "from {size} to {next} at {align}");
            size = next;
        }
        unsafe { dealloc(block, layout(size, align)) };
    }
}

#[test]
fn what_shrinks_much_gives_memory_back() {
    let large = layout(1 << 20, 4096);
    let block = unsafe { alloc(large) };
    let small = unsafe { realloc(block, large, 100) };
    assert!(unsafe { reheap::usable_size(small) } < 1 << 19);
    unsafe { dealloc(small, layout(100, 4096)) };
}

#[test]
fn what_cannot_be_is_null() {
    let largest = isize::MAX as usize;
    for of in [layout(largest, 1), layout(largest - 4095, 4096), layout(1, 1 << (usize::BITS - 2))] {
        assert!(unsafe { alloc(of) }.is_null(), "{of:?}");
        assert!(unsafe { alloc_zeroed(of) }.is_null(), "{of:?}");
    }
    for align in [1, 64] {
        let block = unsafe { alloc(layout(100, align)) };
        fill(block, 100);
        assert!(unsafe { realloc(block, layout(100, align), largest - 65_535) }.is_null());
        assert!(is_filled(block, 100, 100));
        unsafe { dealloc(block, layout(100, align)) };
    }
    assert!(Vec::<u8>::new().try_reserve_exact(largest).is_err());
}

#[test]
fn what_has_no_size_takes_no_block() {
    let mut many = Vec::new();
    many.resize(1000, ());
    assert_eq!((many.len(), many.capacity()), (1000, usize::MAX));
    assert!(!reheap::owns(Vec::<u64>::new().as_ptr()));
}

#[test]
fn blocks_outlive_their_threads() {
    let (send, receive) = channel();
    for number in 0..8u8 {
        let send = send.clone();
        thread::spawn(move || {
            for size in SIZES {
                send.send(vec![number; size]).unwrap();
            }
        });
    }
    drop(send);
    let all: Vec<Vec<u8>> = receive.iter().collect();
    assert_eq!(all.len(), 8 * SIZES.len());
    for mut block in all {
        let number = block[0];
        block.resize(block.len() * 2, number);
        assert!(block.iter().all(|&byte| byte == number));
    }
}

#[test]
fn threads_free_what_others_make() {
    thread::scope(|scope| {
        for _ in 0..2 {
            let (send, receive) = channel::<Box<[usize; 20]>>();
            scope.spawn(move || (0..20_000).for_each(|number| send.send(Box::new([number; 20])).unwrap()));
            scope.spawn(move || receive.iter().enumerate().for_each(|(at, block)| assert_eq!(block[19], at)));
        }
    });
}

#[test]
fn statistics_count_what_is_there() {
    let before = reheap::stats();
    let held = vec![1u8; 8 << 20];
    let now = reheap::stats();
    assert!(now.in_use >= before.in_use + held.len() - (1 << 20), "{before:?} {now:?}");
    assert!(now.committed <= now.reserved && now.in_use <= now.spans_in_use);
    let json = reheap::stats_json();
    assert!(json.starts_with('{') && json.trim_end().ends_with('}') && json.contains("\"version\""), "{json}");
    assert!(reheap::report_json().contains("crate"));
    drop(held);
    reheap::trim();
}

#[test]
fn tags_say_who_holds_what() {
    let outer = reheap::Tag::new("outer").unwrap();
    let inner = reheap::Tag::new("inner").unwrap();
    assert_eq!(reheap::Tag::new("outer"), Ok(outer));
    let scope = outer.enter();
    assert!(scope.in_force());
    let kept = vec![0u8; 200_000];
    let deep = inner.scope(|| (reheap::Tag::current(), vec![0u8; 100_000]));
    assert_eq!((deep.0, reheap::Tag::current()), (inner, outer));
    drop(scope);
    assert_eq!(reheap::Tag::current(), reheap::Tag::NONE);
    let all = reheap::tag_stats();
    let held = |name| all.iter().find(|tag| tag.name == name).map_or(0, |tag| tag.in_use);
    assert!(held("outer") >= 200_000 && (100_000..200_000).contains(&held("inner")), "{all:?}");
    drop((kept, deep));
}

#[test]
fn a_panic_leaves_the_tag() {
    let tag = reheap::Tag::new("panics").unwrap();
    let ended = thread::spawn(move || {
        let caught = std::panic::catch_unwind(|| tag.scope(|| std::panic::resume_unwind(Box::new(1))));
        (caught.is_err(), reheap::Tag::current())
    });
    assert_eq!(ended.join().unwrap(), (true, reheap::Tag::NONE));
}

#[test]
fn a_tags_limit_is_its_own() {
    let tag = reheap::Tag::new("limited").unwrap();
    tag.limit(1 << 20).unwrap();
    assert!(tag.scope(|| Vec::<u8>::new().try_reserve_exact(4 << 20).is_err()));
    assert!(Vec::<u8>::new().try_reserve_exact(4 << 20).is_ok());
    assert!(tag.stats().refused >= 1 && tag.stats().limit == 1 << 20 && tag.stats().name == "limited");
    assert!(reheap::Tag::NONE.limit(1 << 20).is_err());
}

#[test]
fn wrong_input_is_an_error() {
    for name in ["", "zero\0within", &"long".repeat(16)] {
        assert!(reheap::Tag::new(name).is_err(), "{name}");
    }
    assert!(reheap::Tag::new(&"x".repeat(63)).is_ok());
    assert!(reheap::set_limits(1, 0).is_err());
    assert!(reheap::set_limits(2 << 20, 1 << 20).unwrap_err().to_string().contains("1 MiB"));
    assert!(reheap::set_option("no_such_option", "1").is_err());
    assert!(reheap::set_option("decay\0ms", "1").is_err());
    assert!(reheap::set_option("decay_ms", "1000").is_ok());
    assert!(reheap::profile::write("no\0path").is_err());
    assert!(reheap::profile::start(1 << 50).is_err());
    assert!(!reheap::owns(std::ptr::null::<u8>()) && !reheap::owns(16 as *const u8));
}

// ---- what ends a process, in one of its own -------------------------------------------------------

/// Runs an ignored test of this program by itself.
fn alone(test: &str) -> Output {
    let program = std::env::current_exe().unwrap();
    Command::new(program).args(["--ignored", "--exact", "--nocapture", test]).output().unwrap()
}

#[test]
fn beyond_the_limit_rust_is_told() {
    let ended = alone("fills_memory");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success());
    assert!(said.contains("allocation of"), "{said}");
}

#[test]
#[ignore = "run by beyond_the_limit_rust_is_told"]
fn fills_memory() {
    reheap::set_limits(0, 64 << 20).unwrap();
    assert!(Vec::<u8>::new().try_reserve_exact(65 << 20).is_err());
    assert!(reheap::limits().hard_met >= 1);
    let mut all = Vec::new();
    loop {
        all.push(vec![1u8; 1 << 20]);
    }
}

#[test]
fn a_soft_limit_asks_to_free() {
    let ended = alone("frees_when_asked");
    assert!(ended.status.success(), "{ended:?}");
}

#[test]
#[ignore = "run by a_soft_limit_asks_to_free"]
fn frees_when_asked() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn asked(held: usize, soft: usize) {
        assert!(held >= soft);
        drop(String::from("it may allocate"));
        ASKED.fetch_add(1, Ordering::Relaxed);
    }
    assert!(reheap::on_soft_limit(Some(asked)).is_none());
    reheap::set_limits(16 << 20, 0).unwrap();
    let held: Vec<Vec<u8>> = (0..32).map(|_| vec![1u8; 1 << 20]).collect();
    assert!(ASKED.load(Ordering::Relaxed) >= 1 && reheap::limits().soft_met >= 1);
    drop(held);
}

#[test]
fn freed_twice_ends_the_process() {
    let ended = alone("frees_twice");
    assert!(!ended.status.success());
    assert!(String::from_utf8_lossy(&ended.stderr).contains("reheap"), "{ended:?}");
}

#[test]
#[ignore = "run by freed_twice_ends_the_process"]
fn frees_twice() {
    let of = layout(100, 1);
    unsafe {
        let block = alloc(of);
        dealloc(block, of);
        dealloc(block, of);
    }
}
