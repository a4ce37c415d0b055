//! Values of variable length as a row stores them: headers, compressed values, pointers to TOAST.
//!
//! Little-endian layouts only.
