//! The unit of systemd that sets at boot what no file of an owner can.

/// What sets the same values at boot comes first; a unit that does not start delays nothing.
const AFTER: [&str; 5] = [
    "network.target",
    "network-online.target",
    "NetworkManager-wait-online.service",
    "tuned.service",
    "rc-local.service",
];
/// What has irqbalance leave interrupts alone comes before the units of these.
const BEFORE_INTERRUPTS: &str = "linerate-irqbalance.service";

/// The lines that a unit runs.
pub(crate) fn unit_exec(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("ExecStart="))
}

/// Its text, with the lines that it runs.
pub(crate) fn unit_text(name: &str, description: &str, exec: &[String]) -> String {
    let mut after = AFTER.join(" ");
    if name.contains("-irq-") {
        after.extend([" ", BEFORE_INTERRUPTS]);
    }
    let mut text = format!(
        "# Written by linerate; `linerate undo` removes it.\n[Unit]\nDescription={description}\nAfter={after}\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\n"
    );
    for line in exec {
        text.push_str("ExecStart=");
        text.push_str(line);
        text.push('\n');
    }
    text.push_str("\n[Install]\nWantedBy=multi-user.target\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_is_placed_when_irqbalance_leaves_it_alone() {
        let waits = |name: &str| unit_text(name, "", &[]).contains(BEFORE_INTERRUPTS);
        assert!(waits("linerate-eth0-irq-mlx5_comp0") && !waits("linerate-irqbalance"));
    }
}
