//! What else does a run directory hold for people and machines? One file a format.

pub(crate) mod witness;
