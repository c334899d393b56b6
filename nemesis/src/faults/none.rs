//! No fault at all: the run that every other one is compared with.

use fencepost_checker::registry::{Item, Options};

use crate::fault::{Fault, PlanError, PlannedFault, Setting};

pub(super) struct NoFault;

impl Fault for NoFault {
    fn item(&self) -> Item {
        Item {
            name: "none",
            summary: "no fault",
            documentation: "Nothing is done to anybody. A lock that fails here fails by itself.",
            options: &[],
        }
    }

    fn plan(&self, _: &Options, _: &Setting) -> Result<Option<PlannedFault>, PlanError> {
        Ok(None)
    }
}
