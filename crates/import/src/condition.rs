//! The condition under which a test ran, as far as a text shows it: what changed before, the table, variables
//! and options of the command. In: what the walk and the context found. Out: an order in time and a label.

/// Conditions under which a test ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    /// State of the hosts: raised by whatever changes something.
    pub epoch: u32,
    /// What changed it last.
    pub change: String,
    /// The text itself sets this state apart from another one: `Before:`, `and is now`.
    pub is_stated: bool,
    /// Number of the table; 0 outside of tables.
    pub table: u32,
    /// Variables in front of the command.
    pub environment: String,
    /// Options that change what the load can reach.
    pub options: String,
}

impl Condition {
    /// In words.
    pub(crate) fn label(&self) -> String {
        let table = if self.table > 0 { format!("table {}", self.table) } else { String::new() };
        let parts = [self.environment.as_str(), &self.options, &self.change, &table];
        let named: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        if named.is_empty() { "as it was first".to_owned() } else { named.join(", ") }
    }

    /// Position in time: what is called the state before is one, wherever it stands in the text.
    pub(crate) fn position(&self) -> (bool, u32, u32) {
        let is_before =
            self.change.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|w| w == "before");
        (!is_before, self.epoch, self.table)
    }
}
