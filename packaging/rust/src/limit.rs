//! How much the allocator may hold.

use crate::{ffi, stats::figures, Error};

figures! {
    /// The limits in force, and how they were met; from [`limits`]. In bytes; a limit of 0 is none.
    Limits {
        /// Beyond this what is free goes back to the OS at once.
        soft,
        /// What would lead beyond this is refused.
        hard,
        /// What counts: in use, free and not given back, and for descriptors and heaps.
        held,
        /// How often more than the soft limit came to be held.
        soft_met,
        /// How many requests the hard limit refused.
        hard_met,
    }
}

/// Limits what the library holds, in bytes; 0 is no limit. Beyond `soft` what is free goes back to the OS at once; what
/// would lead beyond `hard` is refused: then allocations of Rust's collections end in
/// [`handle_alloc_error`](alloc::alloc::handle_alloc_error), and `try_reserve` fails.
///
/// # Errors
/// For a limit of less than 1 MiB, and a soft limit above the hard one; nothing is changed.
///
/// ```
/// assert!(reheap::set_limits(1, 0).is_err());
/// reheap::set_limits(64 << 20, 1 << 30).unwrap();
/// assert_eq!(reheap::limits().hard, 1 << 30);
/// reheap::set_limits(0, 0).unwrap();
/// ```
pub fn set_limits(soft: usize, hard: usize) -> Result<(), Error> {
    match unsafe { ffi::rh_limit_set(soft, hard) } {
        true => Ok(()),
        false => Err(Error("a limit is at least 1 MiB, and the soft one not above the hard one")),
    }
}

/// The limits in force.
pub fn limits() -> Limits {
    Limits::filled(|limits| unsafe { ffi::rh_limit_get(limits) })
}

/// What [`on_soft_limit`] has called, with what is held and the limit.
pub type SoftLimitFn = extern "C" fn(held: usize, soft: usize);

/// From now on `call` is called when more than the soft limit is held though all that was free went back: by the thread
/// whose request led there, one at a time, with no lock held. It may allocate, and should free what can be done without;
/// a panic in it ends the process. Returns the one before.
pub fn on_soft_limit(call: Option<SoftLimitFn>) -> Option<SoftLimitFn> {
    unsafe { ffi::rh_limit_notify(call) }
}

/// Returns free memory to the OS at once. Returns the number of bytes.
pub fn trim() -> usize {
    unsafe { ffi::rh_trim() }
}
