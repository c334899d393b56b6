//! Which resources are there? One folder each, one line here.

pub mod service;

use crate::resource::Resource;

/// All resources, by name.
pub const RESOURCES: &[&dyn Resource] = &[&service::Service];
