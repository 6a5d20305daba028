//! The numbers that decide about probes and alarms, each with its unit and source.

/// Partners of a host. Kubenurse went from all pairs to 10 neighbours, Deckhouse proposes 5, for the cost of
/// all pairs; eight keep a random graph so well connected that two ill hosts are reported apart.
pub const PARTNERS: usize = 8;

/// Probes that a host sends to each partner, each second. Each is answered: between two partners four
/// datagrams a second are sent, two in each direction.
pub const PROBES_PER_S: f64 = 1.0;

/// How many times as many are sent while something is suspected. With headers a datagram has 106 bytes of
/// 848 bits: 16 a second are 13.6 kbit/s, and 56 are 47.5 kbit/s, less than the 50 that are promised.
pub const FASTER: f64 = 3.5;

/// How long probes are sent faster after a loss, milliseconds: at 0.1 % two more are lost meanwhile.
pub const FASTER_MS: u64 = 40_000;

/// Loss that is normal at least, 0 to 1. What a fleet loses beyond it is learned.
pub const NORMAL_MIN: f64 = 1e-5;

/// Loss above this is never normal, 0 to 1: the least that is to be found.
pub const NORMAL_MAX: f64 = 1e-3;

/// What counts as normal is so many times what half of the hosts lose.
pub const NORMAL_FACTOR: f64 = 3.0;

/// Loss to be found, 0 to 1, and at least so many times the normal one.
pub const WANTED: f64 = 1e-3;
/// See [`WANTED`].
pub const WANTED_FACTOR: f64 = 10.0;

/// Logarithm of how many times likelier the loss to be found is than the normal one. A test that
/// begins anew after each decay to zero is wrong in at most one of e^12, 163,000; a host that normally loses
/// one of 100,000 begins 28 times a day.
pub const SCORE: f64 = 12.0;

/// Losses that are closer than this count once, milliseconds. In switches and sockets whole queues are
/// dropped at a time: such a drop is one event.
pub const APART_MS: u64 = 2_000;

/// Share of losses above which they are an interruption, 0 to 1, …
pub const HEAVY: f64 = 0.05;
/// … which is reported when it lasts, milliseconds: a link that trains anew or a bridge that learns is back
/// after some seconds.
pub const HEAVY_MS: u64 = 15_000;

/// What is remembered of losses, milliseconds: 10 minutes. 0.1 % has lost ten datagrams meanwhile.
pub const MEMORY_MS: u64 = 600_000;

/// Partners that must have lost something to or from a host before it is the host that loses.
pub const HOST_PARTNERS: usize = 2;

/// It is the pair that loses, and not the host, when so many losses would fall to one of the host's partners
/// by chance less often than this, 0 to 1: with eight partners four of four, with two eight of eight.
pub const PAIR_CHANCE: f64 = 0.01;

/// Losses of a pair before it is reported: of a host with one partner nothing else can be.
pub const PAIR_EVENTS: usize = 4;

/// Share of a group that must be suspected before it is the group, 0 to 1, and its least members.
pub const GROUP_SHARE: f64 = 0.5;
/// See [`GROUP_SHARE`].
pub const GROUP_MEMBERS: usize = 3;

/// Share of all losses that must have one end in a group, and in no other group, before it is that group and
/// not every path, 0 to 1. Of three equal groups each has an end in two thirds of the pairs between groups.
pub const GROUP_EXPLAINS: f64 = 0.8;

/// Share of [`SCORE`] at which a member counts as suspected, 0 to 1.
pub const SUSPECTED: f64 = 0.35;

/// An alarm ends when nothing was lost for this time, milliseconds, …
pub const CLEAN_MS: u64 = 60_000;
/// … and so many losses were to be expected meanwhile: none of seven is chance once in a thousand times.
pub const CLEAN_EXPECTED: f64 = 7.0;

/// How often it is learned what is normal, milliseconds: 5 minutes.
pub const LEARN_MS: u64 = 300_000;
/// What remains of older counts each time, 0 to 1: half of an hour ago.
pub const LEARN_KEEP: f64 = 0.944;

/// Losses that a flow which decides is long enough for, at the loss of the alarm: fewer than seven of 20 are
/// chance once in 10,000 times.
pub const DECIDING_LOST: f64 = 20.0;
/// Datagrams of such a flow at least and at most: 2 and 10 seconds, …
pub const DECIDING_SENT: (u64, u64) = (2_000, 10_000);
/// … so many each second of this payload, bytes: 2.1 Mbit/s with headers, a fiftieth of a link of 100 Mbit/s.
pub const DECIDING_PER_S: u64 = 1_000;
/// See [`DECIDING_PER_S`].
pub const DECIDING_BYTES: u16 = 200;
/// The suspect loses more than the control pair when a difference as large would be chance less often than
/// this, 0 to 1: none of the control's and seven of its own.
pub const DECIDING_CHANCE: f64 = 0.01;

/// Requests that decide about an alarm of RTTs at least and at most, one after another: a median of 200
/// ignores a burst, …
pub const DECIDING_REQUESTS: (u16, u16) = (5, 200);
/// … and long RTTs have fewer: each may take 10 ms and its share of this time, milliseconds.
pub const DECIDING_REQUESTS_MS: f64 = 250.0;

/// An alert that lasts is posted to a webhook again after this time, milliseconds: Prometheus' own interval.
pub const RESEND_MS: u64 = 60_000;
/// It ends by itself when so many of them are missed: Prometheus' own factor.
pub const RESENDS_MISSED: u64 = 4;
/// A delivery that failed is tried again after this time, milliseconds, …
pub const REDELIVER_MS: u64 = 60_000;
/// … and dropped after so many attempts.
pub const DELIVERIES_MAX: u32 = 5;
/// How long one delivery may take, milliseconds: a webhook that has not answered by then is overloaded.
pub const DELIVERY_MS: u64 = 20_000;
/// Alerts that a target holds at most; the oldest that was delivered is dropped for a new one.
pub const ALERTS_MAX: usize = 256;

/// Changes of settings are quoted with an alert up to this age before its first loss, milliseconds: a day.
/// What changed earlier was there yesterday at this hour, under the same load.
pub const CHANGED_MS: u64 = 86_400_000;

/// Downloads of a front end and of its best peer before they are compared: of a single one nothing follows.
pub const DOWNLOADS_COMPARED: usize = 2;
/// A front end this many times slower than the best other one, in every download of a round, is reported at
/// once. Through a front end that is just busy a download is some times slower, seldom ten.
pub const SLOWER_AT_ONCE: f64 = 10.0;
/// So many times slower, it is reported when it lasts, …
pub const SLOWER_LASTING: f64 = 1.5;
/// … so many rounds in a row: a change point of `linerate history` needs as many.
pub const ROUNDS_LASTING: usize = 3;
/// Rounds in a row in which all downloads failed through every front end, before that is reported: a service
/// that starts anew is back by then.
pub const ROUNDS_FAILED: usize = 2;
/// Rounds before the last [`ROUNDS_LASTING`] ones with which a path is compared at least.
pub const ROUNDS_BEFORE: usize = 6;
/// Rounds that are remembered of a path: as many as a change point is searched in, and at most, …
pub const ROUNDS_KEPT: (usize, usize) = (200, 2_000);
/// … those of a day, milliseconds: each day has a level that is its lowest.
pub const ROUNDS_KEPT_MS: u64 = 86_400_000;
/// Downloads are as usual again when they are at most so many times slower, …
pub const SLOWER_STILL: f64 = 1.25;
/// … so many rounds in a row.
pub const ROUNDS_CLEAR: usize = 2;
/// Share of the hosts and URLs that must be slow through a front end before it is the front end, 0 to 1: a
/// small file is fast through a slow one.
pub const VIA_SHARE: f64 = 0.6;

/// Numbers of a sequential test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestRules {
    /// Share that is normal at least and at most, 0 to 1.
    pub normal: (f64, f64),
    /// Share to be found, 0 to 1.
    pub wanted: f64,
    /// How long a heavy loss has to last before it is reported, milliseconds.
    pub heavy_ms: u64,
    /// What is remembered of losses, milliseconds.
    pub memory_ms: u64,
    /// How long nothing has to be lost before an alarm ends, milliseconds.
    pub clean_ms: u64,
}

/// The test of lost probes.
pub const LOSS: TestRules = TestRules {
    normal: (NORMAL_MIN, NORMAL_MAX),
    wanted: WANTED,
    heavy_ms: HEAVY_MS,
    memory_ms: MEMORY_MS,
    clean_ms: CLEAN_MS,
};

/// The test of late minutes: of a pair that has none in a day, one in 500 is normal. Five in a row are
/// reported: what lasts that long is no burst.
pub const LATE: TestRules = TestRules {
    normal: (2e-3, 1e-2),
    wanted: 0.06,
    heavy_ms: 4 * 60_000,
    memory_ms: 20 * 60_000,
    clean_ms: 5 * 60_000,
};

/// A minute is late when its median RTT is so many times the highest level of the day before, …
pub const RTT_RISE: f64 = 1.5;
/// … and so much longer, microseconds: what a CPU takes to wake from its deepest idle state.
pub const RTT_RISE_US: f64 = 100.0;
/// Minutes that make a level: a busy quarter of an hour is none.
pub const SLOT_MINUTES: u64 = 30;
/// Minutes that must have been measured for a level.
pub const SLOT_SEEN: usize = 10;
/// Levels of a day.
pub const SLOTS_OF_DAY: u64 = 24 * 60 / SLOT_MINUTES;

/// A link is in use from this share of its speed on. Probes of a watch are 50 kbit/s a host, its agents and
/// time servers less than that: 1 % of 10 Mbit/s.
pub const IN_USE_SHARE: f64 = 0.01;
/// The same where its speed is not known, bit/s: 1 % of 1 Gbit/s.
pub const IN_USE_BPS: f64 = 10e6;
