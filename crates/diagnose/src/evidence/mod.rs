//! Stage 1, `collect`: samples become cells, one for each ordered pair in one layer, and tests that say
//! nothing are set apart. Beside them the facts of the hosts, found by host, NIC and pattern. Nothing is
//! judged.

mod cells;
mod endpoints;
mod facts;
mod layouts;
mod transfers;

pub(crate) use cells::{
    CellEvidence, Kind, Single, collect, groups_by_host, is_of_probes, is_own_failure, is_small,
    jump_together, peer_rates, rtt_spread, tcp_values, two_hosts,
};
pub(crate) use endpoints::addresses;
pub(crate) use facts::Facts;
pub(crate) use transfers::series;
