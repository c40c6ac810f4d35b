//! What the process tells about itself.

pub mod logging;
pub mod metrics;
