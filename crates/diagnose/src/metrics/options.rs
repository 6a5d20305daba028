//! Options of TCP that both ends of a transfer have switched on, and whether their connections agreed on
//! them.
//!
//! In: facts, and cells with the state of their connections. Out: for each option and cell whether a device
//! on the path takes it out.

use linerate_model::load::{AgreedOptions, TcpEnd};
use linerate_model::remark::TcpOption;

use crate::evidence::{CellEvidence, Facts};

/// An option, how it shows in a connection, and the sysctl with the values of a sender and of a receiver that
/// have it switched on: a receiver agrees to ECN also with 2, but asks for it only with 1.
pub(crate) struct Switch {
    pub option: TcpOption,
    agreed: fn(&TcpEnd, &AgreedOptions) -> bool,
    key: &'static str,
    sender: &'static [f64],
    receiver: &'static [f64],
}

/// All options.
pub(crate) const SWITCHES: [Switch; 4] = [
    Switch {
        option: TcpOption::Sack,
        agreed: |_, options| options.sack,
        key: "sysctl.net.ipv4.tcp_sack",
        sender: &[1.0],
        receiver: &[1.0],
    },
    Switch {
        option: TcpOption::Ecn,
        agreed: |_, options| options.ecn,
        key: "sysctl.net.ipv4.tcp_ecn",
        sender: &[1.0],
        receiver: &[1.0, 2.0],
    },
    Switch {
        option: TcpOption::Timestamps,
        agreed: |_, options| options.timestamps,
        key: "sysctl.net.ipv4.tcp_timestamps",
        sender: &[1.0, 2.0],
        receiver: &[1.0, 2.0],
    },
    Switch {
        option: TcpOption::WindowScale,
        agreed: |end, _| end.wscale != (0, 0),
        key: "sysctl.net.ipv4.tcp_window_scaling",
        sender: &[1.0],
        receiver: &[1.0],
    },
];

impl Switch {
    /// Whether no connection of a cell agreed on it although both ends have it on; `None` where an end does
    /// not, or that is not known.
    pub(crate) fn is_taken_out(&self, facts: &Facts<'_>, cell: &CellEvidence<'_>) -> Option<bool> {
        let is_on = |host: &str, values: &[f64]| {
            facts.number(host, self.key).is_some_and(|value| values.contains(&value))
        };
        if !is_on(cell.from, self.sender) || !is_on(cell.to, self.receiver) {
            return None;
        }
        let mut agreed =
            ends(cell).filter_map(|end| Some((self.agreed)(end, end.agreed.as_ref()?))).peekable();
        agreed.peek()?;
        Some(!agreed.any(|has| has))
    }
}

/// Ends of the transfers of a cell that report their options, at the sender.
pub(crate) fn ends<'c>(cell: &'c CellEvidence<'_>) -> impl Iterator<Item = &'c TcpEnd> {
    cell.measured().filter_map(|(_, m)| m.tx.as_ref()?.tcp.as_ref()).filter(|end| end.agreed.is_some())
}
