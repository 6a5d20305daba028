//! Random interleavings of this program with people, other checks, reboots and time-outs, for tests: over a
//! model of Slurm here, over a real one in the lab.
//!
//! In: a seed, and a scheduler on which others can act. Out: what happened, and every breach of the rules.
#![allow(clippy::missing_panics_doc)]

mod interleave;
mod model;
mod watched;

pub use interleave::{Interleaving, Tally, interleave};
pub use model::ModelSlurm;
pub use watched::{Others, WatchedAct};

#[cfg(test)]
mod tests {
    use super::super::HoldMeans;
    use super::*;

    fn all(count: u64, by: HoldMeans, careless: bool) -> Tally {
        let mut tally = Tally::default();
        for seed in 0..count {
            // Mostly so few nodes that others act on the one that is written; some with a cap of more than 2.
            let nodes = if seed % 16 == 0 { 60 } else { 3 + seed as usize % 5 };
            let mut slurm = ModelSlurm::new(nodes);
            let wanted = Interleaving { seed, steps: 30, start_ms: 1_795_000_000_000, by, careless };
            tally.add(interleave(&mut slurm, wanted));
        }
        println!("{count} interleavings by {by:?}, seeds from 0, careless {careless}:");
        println!(
            "{} drains, {} resumes, {} late, {} killed, {} unsaved, {} trips, {} acts of others, {} changed, \
             {} breaches",
            tally.drains,
            tally.resumes,
            tally.late,
            tally.killed,
            tally.unsaved,
            tally.trips,
            tally.acts,
            tally.changed,
            tally.breaches.len()
        );
        tally
    }

    #[test]
    fn no_reason_is_overwritten_and_no_resume_is_wrong_in_10_000_interleavings() {
        let tally = all(10_000, HoldMeans::State, false);
        assert!(tally.breaches.is_empty(), "{:#?}", &tally.breaches[..tally.breaches.len().min(3)]);
        // It did what it is there for, and met what it has to withstand.
        assert!(tally.drains > 2_000 && tally.resumes > 500 && tally.changed > 100, "{tally:?}");
        assert!(tally.late > 1_000 && tally.killed > 1_000 && tally.trips > 500, "{tally:?}");
        assert!(tally.unsaved > 1_000, "{tally:?}");
    }

    #[test]
    fn reservations_touch_no_reason_and_end_only_after_a_run_that_passed() {
        let tally = all(2_000, HoldMeans::Reservation, false);
        assert!(tally.breaches.is_empty(), "{:#?}", &tally.breaches[..tally.breaches.len().min(3)]);
        assert!(tally.drains > 400 && tally.resumes > 100, "{tally:?}");
    }

    #[test]
    fn without_the_reading_right_before_a_write_breaches_are_noticed() {
        let tally = all(1_000, HoldMeans::State, true);
        let of = |what: &str| tally.breaches.iter().filter(|breach| breach.contains(what)).count();
        assert!(of("overwritten") > 20 && of("wrong resume") > 5, "{tally:?}");
    }
}
