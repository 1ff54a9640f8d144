//! What the allocator holds, in figures.

use crate::{ffi, text};
use alloc::string::String;

/// Figures of the library: a structure of reheap.h, filled by one of its functions.
macro_rules! figures {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $field:ident),* $(,)? }) => {
        $(#[$about])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name {
            struct_size: usize,
            $($(#[$of])* pub $field: usize,)*
        }

        impl $name {
            pub(crate) fn filled(fill: impl FnOnce(*mut $name) -> bool) -> $name {
                let mut figures = $name { struct_size: core::mem::size_of::<$name>(), $($field: 0,)* };
                fill(&mut figures);
                figures
            }
        }

        #[cfg(feature = "serde")]
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct;
                const FIELDS: &[&str] = &[$(stringify!($field)),*];
                let mut all = serializer.serialize_struct(stringify!($name), FIELDS.len())?;
                $(all.serialize_field(stringify!($field), &self.$field)?;)*
                all.end()
            }
        }
    };
}
pub(crate) use figures;

figures! {
    /// What the library holds, in bytes; from [`stats`].
    Stats {
        /// Address space reserved.
        reserved,
        /// Address space committed.
        committed,
        /// The most there was of it.
        committed_peak,
        /// In blocks handed out, at usable sizes, threads' bins included.
        in_use,
        /// In slabs and large blocks.
        spans_in_use,
        /// The most there was of it.
        spans_in_use_peak,
        /// Free, probably resident, to be reused or returned.
        free_dirty,
        /// Touched for descriptors and heaps.
        metadata,
        /// Returned to the OS since the start.
        returned,
        /// How many heaps of threads there are, idle ones included.
        heaps,
        /// How many blocks were freed by a thread that did not own them.
        remote_frees,
        /// How many messages carried them.
        remote_batches,
        /// How often a thread's free list was refilled.
        slow_paths,
        /// How many calls of the OS were made.
        os_calls,
    }
}

/// What the library holds. Gathered now: this costs allocating nothing.
pub fn stats() -> Stats {
    Stats::filled(|stats| unsafe { ffi::rh_stats_get(stats) })
}

/// All statistics as one JSON object.
pub fn stats_json() -> String {
    text::collect(ffi::rh_stats_json)
}

/// Version, build, options in force and address space, as one JSON object.
pub fn report_json() -> String {
    text::collect(ffi::rh_report_json)
}
