//! Enums with numbers and names: the states, operations, classes and methods of I/O.
//!
//! The fields that describe an I/O are atomics, so an enum value is stored as a number, while the
//! views show its name. We generate the variants, numbers and names from a single list, so that
//! they always agree.

/// Takes a list of variants and their names, and declares the enum, an array of all its variants,
/// and conversions from a variant to its name and from a number to a variant. The numbers are 0, 1,
/// 2 and so on.
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

            /// Returns the variant with this number, or the first variant if the number is invalid.
            /// Since the number always comes from a variant, that can't happen in practice, but
            /// decoding must not be able to panic.
            pub(crate) fn from_number(number: u8) -> Self {
                $all.get(usize::from(number)).copied().unwrap_or($all[0])
            }
        }
    };
}

pub(crate) use named_enum;
