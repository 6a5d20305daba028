//! Every number of the reasoning: its value, unit, meaning and source, one struct for each stage.
//!
//! A stage takes its numbers from the [`Rules`] that it is given and has none of its own, so that each can be
//! varied without a build. `cargo xtask rules` measures what halving and doubling each of them changes.

mod attribute;
mod calibration;
mod ceilings;
mod disks;
mod drops;
mod evidence;
mod history;
mod http;
mod locate;
mod merge;
mod metrics;
mod next;
mod notes;
mod number;
mod stored_outliers;
mod symptoms;
mod trials;

pub use attribute::AttributeRules;
pub use calibration::CalibrationRules;
pub use ceilings::CeilingRules;
pub use disks::DiskRules;
pub use drops::DropRules;
pub use evidence::EvidenceRules;
pub use history::HistoryRules;
pub use http::HttpRules;
pub use locate::LocateRules;
pub use merge::MergeRules;
pub use metrics::MetricRules;
pub use next::NextRules;
pub use notes::NoteRules;
pub use number::Rule;
pub use stored_outliers::OutlierRules;
pub use symptoms::SymptomRules;
pub use trials::TrialRules;

use number::Number;

macro_rules! rules {
    ($($stage:ident: $kind:ident, $about:literal;)*) => {
        /// All numbers.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Rules {
            $(#[doc = $about] pub $stage: $kind,)*
        }

        impl Rules {
            /// The numbers in force.
            pub const DEFAULT: Self = Self { $($stage: $kind::DEFAULT,)* };
            /// The stages with what they do, in their order.
            pub const STAGES: &[(&'static str, &'static str)] = &[$((stringify!($stage), $about)),*];

            fn each(&mut self, see: &mut dyn FnMut(&'static str, [&'static str; 4], &mut dyn Number)) {
                $(self.$stage.each(&mut |about, number| see(stringify!($stage), about, number));)*
            }
        }
    };
}

rules! {
    evidence: EvidenceRules, "What was measured, and what of it is valid.";
    ceilings: CeilingRules, "What should be reached.";
    metrics: MetricRules, "How far off each cell is in each metric, against its noise.";
    locate: LocateRules, "Which suspects explain it: always, intermittent, bimodal.";
    attribute: AttributeRules, "Why: causes by what was read and measured.";
    calibration: CalibrationRules, "From log odds to the probabilities that are shown.";
    merge: MergeRules, "Findings: what is one, what is listed.";
    next: NextRules, "Which measurement would decide.";
    symptoms: SymptomRules, "What imported transfers show by themselves.";
    notes: NoteRules, "Headline, notes and tuning advice.";
    disks: DiskRules, "Drives, volumes and replicas.";
    http: HttpRules, "Front ends of a service.";
    trials: TrialRules, "The effect of a change; not part of a diagnosis, so not varied.";
    history: HistoryRules, "What moved over many runs; not part of a diagnosis, so not varied.";
    drops: DropRules, "Hosts that drop the same packets; not part of a diagnosis, so not varied.";
    stored_outliers: OutlierRules, "Hosts that stand out in stored series; not part of a survey, so not varied.";
}

impl Rules {
    /// All numbers with what is known of them, in the order of the stages.
    #[must_use]
    pub fn list(&self) -> Vec<Rule> {
        let mut list = Vec::new();
        self.clone().each(&mut |stage, [name, unit, meaning, source], number| {
            list.push(Rule { stage, name, value: number.text(), unit, meaning, source });
        });
        list
    }

    /// The same with one number multiplied; counts are rounded.
    #[must_use]
    pub fn scaled(&self, rule: &Rule, by: f64) -> Self {
        let mut scaled = self.clone();
        scaled.each(&mut |stage, [name, ..], number| {
            if (stage, name) == (rule.stage, rule.name) {
                number.scale(by);
            }
        });
        scaled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_one_name_and_can_be_varied() {
        let list = Rules::DEFAULT.list();
        for rule in &list {
            let same = list.iter().filter(|r| (r.stage, r.name) == (rule.stage, rule.name)).count();
            assert!(same == 1 && !rule.meaning.is_empty(), "{rule:?}");
            let changed = Rules::DEFAULT.scaled(rule, 2.0).list();
            let others =
                |rules: &[Rule]| rules.iter().filter(|r| r.name != rule.name).cloned().collect::<Vec<_>>();
            assert!(others(&changed) == others(&list), "{rule:?}");
        }
        assert!(Rules::DEFAULT.list() == list);
    }
}
