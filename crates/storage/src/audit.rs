//! The sentences of an audit of a data folder. In: counts by class. Out: sentences. Pure.

use linerate_model::audit::{AuditKind, AuditPart};

/// What it means and what comes next.
#[must_use]
pub fn sentences(part: &AuditPart, sums: bool) -> Vec<String> {
    let count = |names: &[&str]| -> u64 {
        names.iter().filter_map(|name| part.classes.get(*name)).map(|class| class.count).sum()
    };
    let files: u64 = part.classes.values().map(|class| class.count).sum();
    let mut words = match (part.losses(), files) {
        (_, 0) => vec!["There is nothing in this folder that belongs to such data.".to_owned()],
        (0, _) => vec![format!("Nothing is lost among {files}.")],
        (losses, _) => vec![format!("{losses} of {files} are lost or cannot be trusted.")],
    };
    if part.kind == AuditKind::Hadoop {
        let (empty, metadata) =
            (count(&["empty", "empty-alone"]), count(&["meta-missing", "meta-empty", "block-missing"]));
        if empty > 0 {
            words.push(format!(
                "{empty} blocks have no byte: they were closed, and the power went before the kernel had written them. A data node does that unless dfs.datanode.synconclose is set. It is no bug of the file system."
            ));
        }
        if empty + metadata > 0 {
            words.push(
                "HDFS replaces a replica from another node when it notices: `hdfs fsck / -list-corruptfileblocks`. Where all replicas lost their power at the same time, all may be gone: audit the other nodes too."
                    .to_owned(),
            );
        }
        if !sums && files > 0 {
            words.push(
                "Only lengths were compared; --sums reads the data and compares every checksum.".to_owned(),
            );
        }
    }
    if part.kind == AuditKind::Gluster {
        if count(&["empty-orphan", "orphan", "dangling"]) > 0 {
            words.push(
                "What has no name in the brick was being created or renamed when the power went; the other replica has the name, and self-heal follows it: `gluster volume heal VOLUME info`."
                    .to_owned(),
            );
        }
        if count(&["link-missing", "link-other"]) > 0 {
            words.push(
                "A file without its link is found by path but not by identifier. Opening it through a mount \
                 of the volume makes the link again."
                    .to_owned(),
            );
        }
        if count(&["no-gfid"]) > 0 {
            words.push(
                "A file without an identifier was copied straight into the brick, or lost its attributes: Gluster does not replicate it. Move it out and write it through a mount of the volume."
                    .to_owned(),
            );
        }
        if sums {
            words.push("Gluster keeps no checksums that could be compared here.".to_owned());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use linerate_model::audit::Harm;

    use super::*;

    #[test]
    fn sentences_follow_from_the_counts() {
        let mut part = AuditPart::new(AuditKind::Hadoop);
        assert!(sentences(&part, false)[0].starts_with("There is nothing"));
        part.add("whole", Harm::Fine, "fine", 5, String::new);
        assert_eq!(sentences(&part, true), ["Nothing is lost among 1."]);
        part.add("empty", Harm::Loss, "gone", 0, || "blk_1".into());
        let text = sentences(&part, false).join(" ");
        assert!(text.contains("1 of 2 are lost") && text.contains("synconclose") && text.contains("--sums"));
        part.kind = AuditKind::Gluster;
        part.add("orphan", Harm::Loss, "gone", 0, || "x".into());
        assert!(sentences(&part, false).join(" ").contains("self-heal"));
    }
}
