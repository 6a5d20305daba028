//! The model of one direction of a wire: a link of some rate with a bounded queue before it and a delay
//! behind it.
//!
//! In: frames with the time they came. Out: frames with the time at which they are due at the other end, in
//! order of that time. It never reads a clock and never does I/O.

use std::collections::VecDeque;
use std::ops::Range;

use linerate_model::random::Random;

use crate::wire::damaged;
use crate::wire::overlay_join::is_tunnel;
use crate::wire::policer::Policer;
use crate::wire::segment::{self, SegmentKind};
use crate::wire::settings::{PAUSE_EVERY_NS, Settings};

/// How long a packet that is to be overtaken stays behind: longer than TCP's patience of a quarter of the
/// RTT.
const OVERTAKEN_NS: u64 = 3_000_000;
const FLAP_NS: Range<u64> = 100_000_000..200_000_000;

/// A frame in flight.
#[derive(Debug)]
pub struct Parcel {
    /// When it is to arrive, monotonic nanoseconds.
    pub due_ns: u64,
    /// The frame behind its virtio-net header.
    pub frame: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Arrives,
    Lost,
    Damaged,
    Overtaken,
    Doubled,
}

/// Frames in flight in one direction.
#[derive(Debug)]
pub struct Queue {
    settings: Settings,
    random: Random,
    /// When the link will have sent all that was accepted.
    free_ns: u64,
    last_due_ns: u64,
    in_flight: VecDeque<Parcel>,
    flap_slow: bool,
    flap_until_ns: u64,
    policer: Policer,
    /// Segments dropped because the queue was full.
    pub overflowed: u64,
}

impl Queue {
    /// An idle link.
    pub fn new(settings: Settings, seed: u64) -> Self {
        Self {
            settings,
            random: Random(seed),
            free_ns: 0,
            last_due_ns: 0,
            in_flight: VecDeque::new(),
            flap_slow: false,
            flap_until_ns: 0,
            policer: Policer::default(),
            overflowed: 0,
        }
    }

    /// Follows other settings from now on.
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Takes a frame that came at `now_ns`.
    pub fn accept(&mut self, now_ns: u64, frame: &[u8]) {
        let shape = segment::shape(frame);
        let too_large = |limit: u32| limit > 0 && packet_bytes(&shape) > limit as usize;
        if too_large(self.settings.packet_bytes_max) || too_large(self.settings.nic_mtu) {
            return;
        }
        let rate = self.rate(now_ns);
        let s = &self.settings;
        if s.loss_ppm + s.damage_ppm + s.reorder_ppm + s.duplicate_ppm == 0 {
            return self.enqueue(now_ns, rate, frame, &shape, 0..shape.segments, Fate::Arrives);
        }
        let mut start = 0;
        while start < shape.segments {
            let fate = self.fate();
            let mut end = start + 1;
            let mut next = Fate::Arrives;
            while fate == Fate::Arrives && end < shape.segments {
                next = self.fate();
                if next != Fate::Arrives {
                    break;
                }
                end += 1;
            }
            self.enqueue(now_ns, rate, frame, &shape, start..end, fate);
            if next != Fate::Arrives {
                self.enqueue(now_ns, rate, frame, &shape, end..end + 1, next);
                end += 1;
            }
            start = end;
        }
    }

    /// The next frame that is due.
    pub fn take_due(&mut self, now_ns: u64) -> Option<Parcel> {
        if self.in_flight.front()?.due_ns > now_ns { None } else { self.in_flight.pop_front() }
    }

    /// When the next frame is due.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.in_flight.front().map(|p| p.due_ns)
    }

    fn fate(&mut self) -> Fate {
        let dice = self.random.below(1_000_000) as u32;
        let s = &self.settings;
        let fates = [
            (s.loss_ppm, Fate::Lost),
            (s.damage_ppm, Fate::Damaged),
            (s.reorder_ppm, Fate::Overtaken),
            (s.duplicate_ppm, Fate::Doubled),
        ];
        let mut below = 0;
        for (share, fate) in fates {
            below += share;
            if dice < below {
                return fate;
            }
        }
        Fate::Arrives
    }

    fn rate(&mut self, now_ns: u64) -> u64 {
        if self.settings.flapping_rate_bps == 0 {
            return self.settings.rate_bps;
        }
        if now_ns >= self.flap_until_ns {
            self.flap_slow = !self.flap_slow;
            self.flap_until_ns =
                now_ns + FLAP_NS.start + self.random.below((FLAP_NS.end - FLAP_NS.start) as usize) as u64;
        }
        if self.flap_slow { self.settings.flapping_rate_bps } else { self.settings.rate_bps }
    }

    fn enqueue(
        &mut self,
        now: u64,
        rate: u64,
        frame: &[u8],
        shape: &SegmentKind,
        wanted: Range<usize>,
        fate: Fate,
    ) {
        if fate == Fate::Lost {
            return;
        }
        let passing = wanted.start..wanted.start + self.that_pass(now, frame, shape, &wanted);
        let segments = passing.start..passing.start + self.that_fit(now, rate, shape, &passing);
        self.overflowed += (wanted.len() - segments.len()) as u64;
        if segments.is_empty() {
            return;
        }
        let sent_ns = self.free_ns.max(now) + self.time_on_the_wire_ns(rate, shape, &segments);
        self.free_ns = sent_ns;
        let jitter_ns = self.random.below(self.settings.jitter_ns as usize) as u64;
        let due_ns = after_the_pause(sent_ns + self.settings.delay_ns + jitter_ns, self.settings.pause_ns);
        let mut data = segment::part(frame, shape, &segments);
        if fate == Fate::Damaged {
            damaged::damage(&mut data);
        }
        if fate == Fate::Overtaken {
            let late_ns = due_ns + OVERTAKEN_NS;
            let at = self.in_flight.partition_point(|p| p.due_ns <= late_ns);
            return self.in_flight.insert(at, Parcel { due_ns: late_ns, frame: data });
        }
        // A shorter delay set under traffic must not let frames overtake by accident.
        let due_ns = due_ns.max(self.last_due_ns);
        self.last_due_ns = due_ns;
        let at = self.in_flight.partition_point(|p| p.due_ns <= due_ns);
        if fate == Fate::Doubled {
            self.in_flight.insert(at, Parcel { due_ns, frame: data.clone() });
        }
        self.in_flight.insert(at, Parcel { due_ns, frame: data });
    }

    /// How long the link sends; a wire without a limit takes no time.
    fn time_on_the_wire_ns(&self, rate: u64, shape: &SegmentKind, segments: &Range<usize>) -> u64 {
        let bits = shape.wire_bytes(segments) as u64 * 8;
        let by_bits = (bits * 1_000_000_000).checked_div(rate).unwrap_or(0);
        let packets = segments.len() as u64;
        let by_packets =
            (packets * 1_000_000_000).checked_div(u64::from(self.settings.packets_per_s)).unwrap_or(0);
        by_bits.max(by_packets)
    }

    /// How many of the segments the queue still takes.
    fn that_fit(&self, now_ns: u64, rate: u64, shape: &SegmentKind, wanted: &Range<usize>) -> usize {
        if rate == 0 {
            return wanted.len();
        }
        // u128: a queue of minutes times a rate of terabits must not overflow.
        let waiting = u128::from(self.free_ns.saturating_sub(now_ns)) * u128::from(rate) / 8_000_000_000;
        let free = u128::from(self.settings.queue_bytes).saturating_sub(waiting);
        let each = shape.wire_bytes(&(wanted.start..wanted.start + 1)) as u128;
        wanted.len().min((free / each) as usize)
    }

    /// How many of the segments the policer lets through.
    fn that_pass(&mut self, now_ns: u64, frame: &[u8], shape: &SegmentKind, wanted: &Range<usize>) -> usize {
        let s = &self.settings;
        if s.police_bps == 0 || (s.polices_tunnel_only && !is_tunnel(frame)) {
            return wanted.len();
        }
        let each = shape.wire_bytes(&(wanted.start..wanted.start + 1));
        self.policer.pass(now_ns, self.settings.police_bps, each, wanted.len())
    }
}

/// The end of the pause in which something would arrive, or the time itself when it lies outside.
fn after_the_pause(due_ns: u64, pause_ns: u64) -> u64 {
    let since_ns = due_ns % PAUSE_EVERY_NS;
    if since_ns < pause_ns { due_ns - since_ns + pause_ns } else { due_ns }
}

/// The size by which a path judges the frame.
fn packet_bytes(shape: &SegmentKind) -> usize {
    if shape.header_bytes == 0 {
        shape.payload_bytes.saturating_sub(segment::ETHERNET_BYTES)
    } else {
        shape.packet_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: usize = linerate_sys::tap::VNET_HEADER_BYTES + 976;

    fn settings() -> Settings {
        Settings { rate_bps: 8_000_000, delay_ns: 1_000_000, queue_bytes: 10_000, ..Settings::default() }
    }

    #[test]
    fn a_packet_takes_its_time_on_the_wire_and_the_delay() {
        let mut q = Queue::new(settings(), 1);
        q.accept(0, &[0; PACKET]);
        q.accept(0, &[0; PACKET]);
        assert_eq!(q.next_due_ns(), Some(2_000_000), "1000 bytes at 1 byte/us, then 1 ms");
        assert!(q.take_due(1_999_999).is_none());
        assert!(q.take_due(2_000_000).is_some());
        assert_eq!(q.next_due_ns(), Some(3_000_000));
    }

    #[test]
    fn a_full_queue_drops() {
        let mut q = Queue::new(settings(), 1);
        for _ in 0..30 {
            q.accept(0, &[0; PACKET]);
        }
        assert_eq!(q.in_flight.len(), 10);
        assert_eq!(q.overflowed, 20);
    }

    #[test]
    fn loss_doubling_and_overtaking_take_their_share() {
        let count = |change: fn(&mut Settings)| {
            let mut s = Settings::default();
            change(&mut s);
            let mut q = Queue::new(s, 3);
            for now in 0..10_000 {
                q.accept(now, &[0; PACKET]);
            }
            assert!(q.in_flight.iter().zip(q.in_flight.iter().skip(1)).all(|(a, b)| a.due_ns <= b.due_ns));
            (q.in_flight.len(), q.in_flight.iter().filter(|p| p.due_ns > 1_000_000).count())
        };
        assert!((9_850..9_950).contains(&count(|s| s.loss_ppm = 10_000).0));
        assert!((10_050..10_150).contains(&count(|s| s.duplicate_ppm = 10_000).0));
        let (all, late) = count(|s| s.reorder_ppm = 10_000);
        assert_eq!(all, 10_000);
        assert!((50..150).contains(&late));
    }

    #[test]
    fn large_packets_vanish_in_a_black_hole() {
        let mut q = Queue::new(Settings { packet_bytes_max: 900, ..Settings::default() }, 1);
        q.accept(0, &[0; PACKET]);
        assert_eq!(q.next_due_ns(), None);
        q.accept(0, &[0; 500]);
        assert_eq!(q.next_due_ns(), Some(0));
    }

    #[test]
    fn damaged_packets_arrive_and_are_not_the_same() {
        let mut q = Queue::new(Settings { damage_ppm: 1_000_000, ..Settings::default() }, 1);
        q.accept(0, &[0; PACKET]);
        let frame = q.take_due(0).unwrap().frame;
        assert!(frame.len() == PACKET && frame != [0; PACKET]);
    }

    #[test]
    fn a_policed_wire_drops_what_is_too_much_and_lets_nothing_wait() {
        let mut q = Queue::new(Settings { police_bps: 8_000_000, ..Settings::default() }, 1);
        for _ in 0..100 {
            q.accept(0, &[0; PACKET]);
        }
        assert!((25..40).contains(&q.in_flight.len()), "{}", q.in_flight.len());
        assert!(q.in_flight.iter().all(|p| p.due_ns == 0));
    }

    #[test]
    fn a_limit_of_packets_does_not_ask_for_their_size() {
        let mut q = Queue::new(Settings { packets_per_s: 1000, ..Settings::default() }, 1);
        q.accept(0, &[0; 100]);
        q.accept(0, &[0; PACKET]);
        assert_eq!(q.in_flight.iter().map(|p| p.due_ns).collect::<Vec<_>>(), [1_000_000, 2_000_000]);
    }

    #[test]
    fn jitter_and_pauses_keep_the_order() {
        let mut q =
            Queue::new(Settings { jitter_ns: 5_000_000, pause_ns: 50_000_000, ..Settings::default() }, 1);
        for now in 0..2000 {
            q.accept(now * 1_000_000, &[0; PACKET]);
        }
        let due: Vec<u64> = q.in_flight.iter().map(|p| p.due_ns).collect();
        assert!(due.windows(2).all(|w| w[0] <= w[1]));
        assert!(due.iter().all(|ns| ns % PAUSE_EVERY_NS >= 50_000_000), "nothing arrives in a pause");
        assert_eq!(after_the_pause(PAUSE_EVERY_NS + 1, 50_000_000), PAUSE_EVERY_NS + 50_000_000);
    }

    #[test]
    fn flapping_alternates_between_two_rates() {
        let mut q = Queue::new(Settings { flapping_rate_bps: 1_000_000, ..settings() }, 1);
        let rates: Vec<u64> = (0..200).map(|step| q.rate(step * 10_000_000)).collect();
        let changes = rates.windows(2).filter(|w| w[0] != w[1]).count();
        assert!((9..=20).contains(&changes), "{changes} changes in 2 s");
    }
}
