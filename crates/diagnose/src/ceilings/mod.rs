//! Stage 2, `with_ceilings`: what each cell should reach by its link, framing, uplink, PCIe lanes and the
//! tool
//! itself, else by its peers; beside it the classes of ports that throughput alone shows, and the cells as
//! they
//! are reported.

mod ceiling;
mod matrix;
mod ports;
mod speeds;

pub(crate) use ceiling::lanes_bps;
pub(crate) use matrix::{report, with_ceilings};
pub(crate) use ports::Ports;
pub use speeds::{LinkSpeeds, link_speeds};
