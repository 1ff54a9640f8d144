//! Names for what is allocated.

use crate::{ffi, text, Error};
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ptr;

/// A name for what a thread allocates while it is in force there, so that it can be seen who holds how much.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: reheap::Reheap = reheap::Reheap;
/// let parser = reheap::Tag::new("parser").unwrap();
/// let kept = parser.scope(|| vec![0u8; 100_000]);
/// assert!(parser.stats().in_use >= 100_000);
/// # drop(kept);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag(ffi::RhTag);

/// The most tags there can be, what is untagged included.
const MOST: usize = 256;

impl Tag {
    /// What is untagged.
    pub const NONE: Tag = Tag(0);

    /// The tag of that name: the same for the same name, and never gone.
    ///
    /// # Errors
    /// For a name that is empty, longer than 63 bytes or has a zero byte, and when there are 255 already.
    pub fn new(name: &str) -> Result<Tag, Error> {
        const INVALID: Error = Error("a tag's name has 1 to 63 bytes, none of them zero");
        let mut bytes = [0; 64];
        if name.is_empty() || name.len() >= bytes.len() || name.as_bytes().contains(&0) {
            return Err(INVALID);
        }
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        match unsafe { ffi::rh_tag_create(bytes.as_ptr()) } {
            0 => Err(Error("there are 255 tags already, or there is no memory for one")),
            tag => Ok(Tag(tag)),
        }
    }

    /// The tag in force in this thread.
    pub fn current() -> Tag {
        Tag(unsafe { ffi::rh_tag_current() })
    }

    /// Runs `work` with the tag in force in this thread. Where it cannot be brought into force (there is no memory, or 48
    /// are) what was in force still is.
    pub fn scope<R>(self, work: impl FnOnce() -> R) -> R {
        let _scope = self.enter();
        work()
    }

    /// Brings the tag into force in this thread until the guard is dropped. Guards are to be dropped in the reverse order
    /// of their making, as those in nested blocks are; otherwise memory goes to the wrong tag. [`Tag::scope`] cannot be
    /// used wrongly.
    #[must_use = "the tag is in force until this is dropped"]
    pub fn enter(self) -> TagScope {
        TagScope { in_force: unsafe { ffi::rh_tag_push(self.0) }, of_thread: PhantomData }
    }

    /// Limits what the tag holds, in bytes; 0 is no limit. What would lead beyond is refused.
    ///
    /// # Errors
    /// For [`Tag::NONE`].
    pub fn limit(self, hard: usize) -> Result<(), Error> {
        match unsafe { ffi::rh_tag_limit(self.0, hard) } {
            true => Ok(()),
            false => Err(Error("what is untagged has no limit of its own")),
        }
    }

    /// What the tag holds.
    pub fn stats(self) -> TagStats {
        let mut one = EMPTY;
        unsafe { ffi::rh_tag_stats_get(self.0, &mut one, 1) };
        TagStats::of(&one)
    }
}

/// A tag is in force in this thread until this is dropped; from [`Tag::enter`].
#[derive(Debug)]
pub struct TagScope {
    in_force: bool,
    /// Not `Send`: a tag is a thread's.
    of_thread: PhantomData<*const ()>,
}

impl TagScope {
    /// Whether the tag could be brought into force.
    pub fn in_force(&self) -> bool {
        self.in_force
    }
}

impl Drop for TagScope {
    fn drop(&mut self) {
        unsafe { ffi::rh_tag_pop() }
    }
}

/// What a tag holds, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TagStats {
    /// The tag's name.
    pub name: &'static str,
    /// In blocks handed out, at usable sizes, threads' bins included.
    pub in_use: usize,
    /// How many blocks that is.
    pub blocks: usize,
    /// In slabs and large blocks.
    pub held: usize,
    /// The most there was of it; 0 where untagged, as the next two.
    pub held_peak: usize,
    /// 0 is none.
    pub limit: usize,
    /// How many requests the limit refused.
    pub refused: usize,
}

const EMPTY: ffi::RhTagStats = ffi::RhTagStats {
    struct_size: core::mem::size_of::<ffi::RhTagStats>(),
    name: ptr::null(),
    in_use: 0,
    blocks: 0,
    held: 0,
    held_peak: 0,
    limit: 0,
    refused: 0,
};

impl TagStats {
    fn of(c: &ffi::RhTagStats) -> TagStats {
        let name = if c.name.is_null() { "" } else { unsafe { text::from_c(c.name) } };
        TagStats {
            name,
            in_use: c.in_use,
            blocks: c.blocks,
            held: c.held,
            held_peak: c.held_peak,
            limit: c.limit,
            refused: c.refused,
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for TagStats {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut all = serializer.serialize_struct("TagStats", 7)?;
        all.serialize_field("name", self.name)?;
        all.serialize_field("in_use", &self.in_use)?;
        all.serialize_field("blocks", &self.blocks)?;
        all.serialize_field("held", &self.held)?;
        all.serialize_field("held_peak", &self.held_peak)?;
        all.serialize_field("limit", &self.limit)?;
        all.serialize_field("refused", &self.refused)?;
        all.end()
    }
}

/// What each tag holds, from one look; the first is what is untagged.
pub fn tag_stats() -> Vec<TagStats> {
    let mut all = Vec::with_capacity(MOST);
    all.resize(MOST, EMPTY);
    let count = unsafe { ffi::rh_tag_stats_get(0, all.as_mut_ptr(), MOST) };
    all[..count].iter().map(TagStats::of).collect()
}
