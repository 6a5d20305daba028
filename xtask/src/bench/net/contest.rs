//! What a case of the network benchmark is made of: a job, contenders, figures and the ratios demanded.

use anyhow::Result;

use crate::bench::arena::{Arena, Cost, Wire};

/// What a turn measured. What a tool does not say is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Figures {
    /// Payload that arrived, bit/s.
    pub(crate) bps: Option<f64>,
    /// CPU seconds of both processes per gigabyte (1e9 bytes) that arrived.
    pub(crate) cpu_s_per_gb: Option<f64>,
    /// The same of all CPUs of the machine, which both ends share.
    pub(crate) machine_s_per_gb: Option<f64>,
    /// Datagrams that the receiving program read, per second.
    pub(crate) packets_per_s: Option<f64>,
    /// Packets that passed the wire during the turn, per second of the transfer.
    pub(crate) wire_per_s: Option<f64>,
    /// Requests answered per second.
    pub(crate) transactions_per_s: Option<f64>,
}

impl Figures {
    /// With the cost of so many bytes.
    pub(crate) fn with_cost(self, cost: Cost, bytes: f64) -> Self {
        let gigabytes = bytes / 1e9;
        Self {
            cpu_s_per_gb: Some(cost.processes_s / gigabytes),
            machine_s_per_gb: Some(cost.machine_s / gigabytes),
            ..self
        }
    }
}

/// Something to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    /// TCP streams.
    pub(crate) streams: u16,
    /// Bytes of a datagram or of a request.
    pub(crate) bytes: u16,
    /// Seconds.
    pub(crate) seconds: u32,
}

/// One line of a table: a tool with its options.
#[derive(Clone, Copy)]
pub(crate) struct Contender {
    /// As printed.
    pub(crate) name: &'static str,
    /// Program that must be there, and where it comes from; ours needs none.
    pub(crate) needs: Option<(&'static str, &'static str)>,
    /// One turn.
    pub(crate) turn: fn(&Arena, Job) -> Result<Figures>,
}

/// A ratio that is demanded: of our first or second line to the best or to a named line.
pub(crate) struct Demand {
    /// Our line.
    pub(crate) ours: &'static str,
    /// Names of the lines to compare with; the hardest of them counts.
    pub(crate) theirs: &'static [&'static str],
    /// Which figure.
    pub(crate) metric: Metric,
    /// At least (more is better) or at most (CPU).
    pub(crate) limit: f64,
}

/// A case: contenders that do the same job.
pub(crate) struct Case {
    /// As printed and chosen.
    pub(crate) name: &'static str,
    /// What to do.
    pub(crate) job: Job,
    /// What passes between the namespaces.
    pub(crate) wire: Wire,
    /// Who.
    pub(crate) contenders: &'static [Contender],
    /// Figures that are printed.
    pub(crate) metrics: &'static [Metric],
    /// What is demanded.
    pub(crate) demands: &'static [Demand],
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metric {
    /// Gbit/s.
    Throughput,
    /// CPU seconds per gigabyte.
    Cpu,
    /// CPU seconds of the whole machine per gigabyte.
    MachineCpu,
    /// Thousand datagrams per second.
    Packets,
    /// Thousand packets per second on the wire.
    Wire,
    /// Thousand transactions per second.
    Transactions,
}

impl Metric {
    /// Heading of its column.
    pub(crate) fn head(self) -> &'static str {
        match self {
            Self::Throughput => "Gbit/s",
            Self::Cpu => "CPU s/GB",
            Self::MachineCpu => "machine s/GB",
            Self::Packets => "k datagrams/s",
            Self::Wire => "k packets/s on the wire",
            Self::Transactions => "k requests/s",
        }
    }

    /// Its figure in the unit of the column.
    pub(crate) fn of(self, figures: &Figures) -> Option<f64> {
        match self {
            Self::Throughput => figures.bps.map(|v| v / 1e9),
            Self::Cpu => figures.cpu_s_per_gb,
            Self::MachineCpu => figures.machine_s_per_gb,
            Self::Packets => figures.packets_per_s.map(|v| v / 1e3),
            Self::Wire => figures.wire_per_s.map(|v| v / 1e3),
            Self::Transactions => figures.transactions_per_s.map(|v| v / 1e3),
        }
    }
}
