//! Examples of flows: jobs of many tasks.

pub(super) mod after;
pub(super) mod cancel;
pub(super) mod chain;
pub(super) mod dead;
pub(super) mod deadline;
pub(super) mod each;
pub(super) mod join;
pub(super) mod keys;
pub(super) mod optional;
pub(super) mod outputs;
pub(super) mod pause;
pub(super) mod places;
pub(super) mod recovery;
pub(super) mod recovery_of_items;
pub(super) mod registry;
pub(super) mod templates;
pub(super) mod when;
