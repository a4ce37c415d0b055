//! Enums with numbers and names: the states, operations, classes and methods of I/O.
//!
//! An I/O's description consists of atomics, which store an enum value as its number. The views
//! show the value's name. Variants, numbers and names come from one list, so they can't disagree.

/// Declares an enum from a list of variants and their names, the array of all variants, and the
/// conversions to a name and from a number. The numbers are 0, 1, 2 and so on.
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        enum $name:ident {
            $($(#[$doc:meta])* $variant:ident = $text:literal,)*
        }
        $(#[$all_doc:meta])*
        $visibility:vis const $all:ident;
        $(#[$name_doc:meta])*
        fn name;
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        $(#[$all_doc])*
        $visibility const $all: [$name; [$($text),*].len()] = [$($name::$variant),*];

        impl $name {
            $(#[$name_doc])*
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            /// The variant with this number, or the first one if there is none. The number always
            /// comes from a variant, so this fallback is never used, but decoding must not be able
            /// to panic.
            pub(crate) fn from_number(number: u8) -> Self {
                $all.get(usize::from(number)).copied().unwrap_or($all[0])
            }
        }
    };
}

pub(crate) use named_enum;
