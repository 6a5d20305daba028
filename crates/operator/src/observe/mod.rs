//! What a survey measures and how: plan (pure), measure (one test), gather (pure), run (the whole).

pub mod addresses;
pub mod audit;
mod begin;
pub mod bench;
pub mod context;
pub mod disk_survey;
pub mod disk_watch;
pub mod disks;
pub mod disturb;
pub mod drbd;
pub mod drbd_bench;
pub mod drops;
pub mod durability;
mod gather;
pub mod join;
pub mod limits;
pub mod measure;
mod methods;
pub mod nic;
mod own_limit;
mod owned;
pub mod pack;
pub mod pairs;
pub mod plan;
pub mod promises;
pub mod run;
mod same_machine;
#[cfg(test)]
mod scale_tests;
pub mod single;
pub mod slow;
pub mod thinned;
