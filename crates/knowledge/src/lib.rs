//! The causes and the profiles: one TOML file each, embedded from `knowledge/AREA/` and
//! `knowledge/profiles/`, extendable at run time; the classes of dropped packets in `knowledge/drops/`; and
//! the topics of texts, `knowledge/topics.toml`.
//!
//! Text comes in, checked causes and profiles go out; a bad file is an error with its line and a hint, never
//! a panic.
#![deny(missing_docs)]

mod builtin;
mod check;
pub mod drops;
mod error;
pub mod features;
pub mod keys;
pub mod placeholder;
pub mod profile;
mod schema;
mod topics;

use include_dir::{Dir, File};

use builtin::{BUILTIN, utf8};
pub use error::KnowledgeError;
pub use schema::{
    Cause, CauseProof, CauseSymptom, Condition, FactSide, FactTest, FeatureTest, FixTarget, LayerFit,
    NicRole, Op, Prior, RemedyPlan, SettingPlan, StandingCount, SuspectKind,
};
pub use topics::{Topic, Topics, is_read, typed};

/// The files of causes: those in the folders of areas.
fn files_of_causes() -> impl Iterator<Item = &'static File<'static>> {
    let is_other =
        |folder: &&Dir<'_>| [profile::FOLDER, drops::FOLDER].iter().any(|name| folder.path().ends_with(name));
    BUILTIN.dirs().filter(move |folder| !is_other(folder)).flat_map(Dir::files)
}

/// All causes, by id, and the topics of texts.
#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    causes: Vec<Cause>,
    topics: Topics,
}

impl Knowledge {
    /// The causes that come with the program.
    pub fn builtin() -> Result<Self, KnowledgeError> {
        let mut files: Vec<_> = files_of_causes().collect();
        files.sort_by_key(|f| f.path());
        let mut knowledge = Self { topics: topics::builtin()?, ..Self::default() };
        for file in files {
            knowledge.add(&file.path().display().to_string(), utf8(file)?)?;
        }
        Ok(knowledge)
    }

    /// Adds one file: its name for messages, and its text.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), KnowledgeError> {
        let hint = "knowledge/README.md lists every field with its values";
        let mut cause: Cause = check::parse(file, text, hint)?;
        check::cause(file, text, &cause, &self.causes)?;
        if let Some(remedy) = &mut cause.remedy {
            // A file may know of more risk than its settings have, never of less.
            remedy.risk = remedy.risk.max(check::risk(remedy));
        }
        self.causes.push(cause);
        self.causes.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(())
    }

    /// Takes a cause out.
    pub fn remove(&mut self, id: &str) {
        self.causes.retain(|c| c.id != id);
    }

    /// All causes in the order of their ids.
    pub fn causes(&self) -> impl Iterator<Item = &Cause> {
        self.causes.iter()
    }

    /// All topics in their order.
    #[must_use]
    pub fn topics(&self) -> &Topics {
        &self.topics
    }

    /// One cause.
    pub fn get(&self, id: &str) -> Option<&Cause> {
        self.causes.iter().find(|c| c.id == id)
    }

    /// Patterns of all the keys that some cause looks at or changes.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.causes.iter().flat_map(|cause| {
            let facts = || cause.indicators.iter().chain(&cause.excludes);
            let tests = facts().flat_map(|test| &test.keys);
            let also = facts().flat_map(|test| &test.also).flat_map(|condition| &condition.keys);
            // A test against another fact needs that one too.
            let others = facts().filter(|test| test.op.names_a_fact()).filter_map(|test| test.values.first());
            let tests = tests.chain(also).chain(others);
            let settings = cause.remedy.iter().flat_map(|remedy| &remedy.set).flat_map(|set| &set.keys);
            tests.chain(settings).chain(&cause.mismatch).map(String::as_str)
        })
    }

    /// Whether some cause looks at this fact or changes it.
    pub fn looks_at(&self, key: &str) -> bool {
        self.keys().any(|pattern| keys::pattern_fits(pattern, key))
    }

    /// Whether some cause looks at the change of this counter.
    pub fn looks_at_counter(&self, key: &str) -> bool {
        let tests = self.causes.iter().flat_map(|cause| &cause.shape);
        tests
            .filter_map(|test| features::counter(&test.value))
            .any(|pattern| keys::pattern_fits(pattern, key))
    }

    /// Causes whose `proof` names neither a fault of the lab nor a recorded case of the given lists: one line
    /// each.
    pub fn unproven(&self, faults: &[&str], cases: &[&str]) -> Vec<String> {
        let known = |proof: &CauseProof| match proof {
            CauseProof::Case(name) => cases.contains(&name.as_str()),
            CauseProof::Fault(name) => faults.contains(&name.as_str()),
        };
        self.causes
            .iter()
            .flat_map(|c| {
                c.proof.iter().filter(|p| !known(p)).map(move |p| format!("{}: no such proof `{p}`", c.id))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builtin_knowledge_is_sound() {
        let knowledge = Knowledge::builtin().unwrap();
        assert!(knowledge.causes().count() >= 24, "{}", knowledge.causes().count());
        assert!(knowledge.get("packet-loss").is_some());
        for file in files_of_causes() {
            let cause = file.path().file_stem().and_then(|id| knowledge.get(id.to_str()?)).unwrap();
            assert_eq!(file.path().parent().unwrap().to_str(), Some(cause.area.as_str()), "{}", cause.id);
        }
        for cause in knowledge.causes() {
            let unknown = cause.follows_from.iter().find(|id| knowledge.get(id).is_none());
            assert_eq!(unknown, None, "{} follows from a cause that nobody knows", cause.id);
        }
    }

    /// What no setting of ours fixes is a command to type, or the file has a line with the reason.
    #[test]
    fn a_fix_is_a_command_or_its_file_has_the_reason() {
        let knowledge = Knowledge::builtin().unwrap();
        let mut commands = 0;
        for file in files_of_causes() {
            let cause = file.path().file_stem().and_then(|id| knowledge.get(id.to_str()?)).unwrap();
            let Some(remedy) = cause.remedy.as_ref().filter(|remedy| remedy.set.is_empty()) else { continue };
            let is_command = placeholder::is_command(&remedy.by_hand);
            let why = file.contents_utf8().unwrap().lines().find(|line| line.starts_with("# No command: "));
            assert_ne!(is_command, why.is_some(), "{}: {} ({why:?})", cause.id, remedy.by_hand);
            commands += usize::from(is_command);
        }
        assert!(commands >= 12, "{commands}");
    }

    /// The risk stands beside `linerate try`, which does change something.
    #[test]
    fn the_risk_of_a_change_is_not_that_of_a_query() {
        for cause in Knowledge::builtin().unwrap().causes() {
            let Some(remedy) = cause.remedy.as_ref().filter(|remedy| !remedy.set.is_empty()) else {
                continue;
            };
            assert!(!remedy.risk_text.contains("changes nothing"), "{}: {}", cause.id, remedy.risk_text);
        }
    }

    #[test]
    fn a_fix_names_only_settings_that_may_be_written() {
        let good = BUILTIN.get_file("tcp/tcp-sack-off.toml").and_then(|f| f.contents_utf8()).unwrap();
        let set = "keys = [\"sysctl.net.ipv4.tcp_sack\"]\nto";
        assert!(good.contains(set), "{good}");
        for key in [
            "sysctl.kernel.core_pattern",
            "sysctl.kernel.modules_disabled",
            "sysctl.net.*",
            "nic.*.feature.*",
        ] {
            let bad = good.replacen(set, &format!("keys = [\"{key}\"]\nto"), 1);
            let line = bad.lines().position(|l| l == format!("keys = [\"{key}\"]")).map(|at| at + 1);
            let error = Knowledge::default().add("x.toml", &bad).unwrap_err();
            assert!(error.problem.contains(&format!("`{key}` is no setting that may be written")), "{error}");
            assert_eq!(Some(error.line), line, "{error}");
            assert!(error.hint.contains("docs/reference/facts.md"), "{error}");
        }
    }

    #[test]
    fn the_risk_of_a_fix_is_that_of_its_settings_and_a_file_can_only_raise_it() {
        use linerate_model::change::Risk;
        let risk = |text: &str| {
            let mut knowledge = Knowledge::default();
            knowledge.add("x.toml", text).unwrap();
            knowledge.causes().next().unwrap().remedy.as_ref().unwrap().risk
        };
        let ring = BUILTIN.get_file("queue/rx-ring-small.toml").and_then(|f| f.contents_utf8()).unwrap();
        assert!(ring.contains("risk = \"brief\"\n"), "{ring}");
        let says = |word: &str| ring.replacen("risk = \"brief\"\n", &format!("risk = \"{word}\"\n"), 1);
        assert_eq!(risk(&says("harmless")), Risk::Brief);
        assert_eq!(risk(&says("brief")), Risk::Brief);
        assert_eq!(risk(&says("dangerous")), Risk::Dangerous);
    }

    #[test]
    fn a_bad_file_names_its_line() {
        let mut knowledge = Knowledge::default();
        let error = knowledge.add("x.toml", "id = \"x\"\ntitle = 3\n").unwrap_err();
        assert_eq!(error.line, 2);
        assert!(error.to_string().contains("x.toml:2") && error.to_string().contains("hint:"), "{error}");
        let error = knowledge.add("x.toml", "\u{0}").unwrap_err();
        assert!(error.line <= 1);
        let good = BUILTIN.get_file("queue/rx-ring-small.toml").and_then(|f| f.contents_utf8()).unwrap();
        for (old, new, problem) in [
            ("weight = 2.5", "weight = nan", "is no weight"),
            ("weight = 2.5", "weight = 1e300", "is no weight"),
            ("area = \"queue\"", "area = \"quue\"", "`quue` is no area"),
            ("ethtool -G {nic}", "ethtool -G {nick}", "`{nick}` stands for nothing"),
            ("check = \"ethtool", "check = \"<NIC> ethtool", "`<NIC>` is nothing to paste"),
            (
                "by_hand = \"",
                "by_hand = \"on each of the hosts and on none of those that are the others: ",
                "is too long",
            ),
            ("\"0.9\"", "\"abc\"", "without keys or usable values"),
        ] {
            assert!(good.contains(old), "{old}");
            let bad = good.replacen(old, new, 1);
            let line = bad.lines().position(|l| l.contains(new)).map(|at| at + 1);
            let error = knowledge.add("x.toml", &bad).unwrap_err();
            assert!(error.problem.contains(problem), "{error}");
            assert!(problem.starts_with("without") || Some(error.line) == line, "{error}");
        }
    }
}
