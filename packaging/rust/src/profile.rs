//! Profiles of what is allocated by which stack, as pprof reads them.

use crate::{ffi, text, Error};

/// Begins a profile: from now on the stacks are noted that allocate, and how much of it is live, estimated from few
/// blocks. One byte in `every_bytes` is sampled on average; 0 is the default. An earlier profile is forgotten.
///
/// # Errors
/// In the hardened build, and for more than 1 TiB.
pub fn start(every_bytes: u64) -> Result<(), Error> {
    match unsafe { ffi::rh_profile_start(every_bytes) } {
        true => Ok(()),
        false => Err(Error("there are no profiles in the hardened build, nor of one byte in more than 1 TiB")),
    }
}

/// No more blocks are sampled. That those are freed which were is still noted.
pub fn stop() {
    unsafe { ffi::rh_profile_stop() }
}

/// Replaces the file at `path` by the profile so far; `%p` becomes the process's id. The profile goes on.
///
/// # Errors
/// When it cannot be written; the reason is on standard error.
pub fn write(path: &str) -> Result<(), Error> {
    let path = text::terminated(path).ok_or(Error("a path has no zero byte"))?;
    match unsafe { ffi::rh_profile_write(path.as_ptr()) } {
        true => Ok(()),
        false => Err(Error("the profile could not be written")),
    }
}
