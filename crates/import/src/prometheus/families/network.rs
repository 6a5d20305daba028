//! `node_network_*`: counters and settings of network devices. Devices of containers and guests are left out:
//! there may be thousands, and the host's own carry the same packets.

use super::super::answer::Series;
use super::super::family::Family;
use super::super::metric::{Row, Use};
use super::super::taken::Taken;

/// The family.
pub(super) struct Network;

const OTHERS: &str = "lo|veth.*|cali.*|lxc.*|cni.*|flannel.*|docker.*|br-.*|virbr.*|vnet.*|tap.*|ifb.*|dummy.*|kube-.*|nodelocaldns";

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("node_network_info", "nic.{device}.state", Use::Own, 1.0),
    ("node_network_mtu_bytes", "nic.{device}.mtu", Use::Fact, 1.0),
    ("node_network_speed_bytes", "nic.{device}.speed_mbit", Use::Fact, 8e-6),
    ("node_network_transmit_queue_length", "nic.{device}.txqueuelen", Use::Fact, 1.0),
    ("node_network_carrier_changes_total", "nic.{device}.stat.carrier_changes", Use::Counter, 1.0),
    ("node_network_receive_bytes_total", "nic.{device}.stat.rx_bytes", Use::Counter, 1.0),
    ("node_network_receive_packets_total", "nic.{device}.stat.rx_packets", Use::Counter, 1.0),
    ("node_network_receive_errs_total", "nic.{device}.stat.rx_errors", Use::Counter, 1.0),
    ("node_network_receive_drop_total", "nic.{device}.stat.rx_dropped", Use::Counter, 1.0),
    ("node_network_receive_fifo_total", "nic.{device}.stat.rx_fifo_errors", Use::Counter, 1.0),
    ("node_network_receive_frame_total", "nic.{device}.stat.rx_frame_errors", Use::Counter, 1.0),
    ("node_network_transmit_bytes_total", "nic.{device}.stat.tx_bytes", Use::Counter, 1.0),
    ("node_network_transmit_packets_total", "nic.{device}.stat.tx_packets", Use::Counter, 1.0),
    ("node_network_transmit_errs_total", "nic.{device}.stat.tx_errors", Use::Counter, 1.0),
    ("node_network_transmit_drop_total", "nic.{device}.stat.tx_dropped", Use::Counter, 1.0),
    ("node_network_transmit_fifo_total", "nic.{device}.stat.tx_fifo_errors", Use::Counter, 1.0),
    ("node_network_transmit_colls_total", "nic.{device}.stat.collisions", Use::Counter, 1.0),
    ("node_network_transmit_carrier_total", "nic.{device}.stat.tx_carrier_errors", Use::Counter, 1.0),
];

impl Family for Network {
    fn name(&self) -> &'static str {
        "netdev"
    }

    fn rows(&self) -> &'static [Row] {
        ROWS
    }

    fn query(&self, name: &str) -> String {
        format!("{name}{{device!~\"{OTHERS}\"}}")
    }

    fn take(&self, _: &str, series: &Series, taken: &mut Taken<'_>) {
        let nic = format!("nic.{}", series.label("device").replace('.', "/"));
        taken.text(&format!("{nic}.state"), series.label("operstate"));
        taken.text(&format!("{nic}.duplex"), series.label("duplex"));
    }
}
