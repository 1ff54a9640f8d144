//! Text that goes to the library, and comes from it.

use crate::ffi::{Char, RhWriteFn};
use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::c_void;

/// A copy that ends in a zero, as C wants it; `None` if there is one within.
pub fn terminated(text: &str) -> Option<Vec<Char>> {
    if text.as_bytes().contains(&0) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() + 1);
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
    Some(bytes)
}

/// # Safety
/// `text` ends in a zero and is never changed or freed.
pub unsafe fn from_c(text: *const Char) -> &'static str {
    let length = (0..).take_while(|&at| unsafe { *text.add(at) } != 0).count();
    let bytes = unsafe { core::slice::from_raw_parts(text, length) };
    match core::str::from_utf8(bytes) {
        Ok(text) => text,
        // A name that a part of the program in another language gave: as much of it as is text.
        Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
    }
}

struct Collected {
    text: Vec<u8>,
    length: usize,
}

/// All that `say` writes. The memory for it is there before: what writes may be the allocator that we would ask.
pub fn collect(say: unsafe extern "C" fn(RhWriteFn, *mut c_void)) -> String {
    let mut room = 0;
    loop {
        let mut all = Collected { text: Vec::with_capacity(room), length: 0 };
        unsafe { say(add, &mut all as *mut Collected as *mut c_void) };
        if all.text.len() == all.length {
            return String::from_utf8_lossy(&all.text).into_owned();
        }
        room = all.length + all.length / 4;
    }
}

/// # Safety
/// `context` is a `Collected`, and there are `length` bytes at `text`.
unsafe extern "C" fn add(text: *const Char, length: usize, context: *mut c_void) {
    let all = unsafe { &mut *(context as *mut Collected) };
    all.length += length;
    if all.length <= all.text.capacity() {
        all.text.extend_from_slice(unsafe { core::slice::from_raw_parts(text, length) });
    }
}
