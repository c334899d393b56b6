//! Clocks: the true one of the recorder, out of reach of any clock fault.

pub mod raw;
