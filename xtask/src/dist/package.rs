//! What is packed: one [`Package`] for each program; the next is an entry of [`PACKAGES`].

/// A program with what package managers show of it.
pub(crate) struct Package {
    /// Of the package and of the program.
    pub(super) name: &'static str,
    /// One line.
    pub(super) summary: &'static str,
    /// Lines.
    pub(super) description: &'static [&'static str],
    /// Fields of Debian's control file, in which `VERSION` is that of the release.
    pub(super) debian: &'static str,
    /// Lines of the RPM's preamble, the same.
    pub(super) rpm: &'static str,
    /// Files of the checkout that go to the package's folder in `/usr/share/doc`, as texts name them.
    pub(super) documents: &'static [&'static str],
}

/// What is for production hosts, and what breaks things on purpose: two, so that the latter is installed only
/// where someone wants it.
pub(crate) static PACKAGES: [Package; 2] = [
    Package {
        name: "linerate",
        summary: "finds why a cluster is slower than its hardware, and proves the fix",
        description: &[
            "Measures all pairs of hosts and all disks against what the hardware can do,",
            "reads the settings, names the root cause, and tries the fix reversibly.",
        ],
        debian: "Suggests: openssh-client, linerate-lab (= VERSION)\n",
        rpm: "",
        documents: &[
            "README.md",
            "CHANGELOG.md",
            "LICENSE-APACHE",
            "LICENSE-MIT",
            "docs/examples/cluster.toml",
            "cases/casebook-a3.toml",
        ],
    },
    Package {
        name: "linerate-lab",
        summary: "virtual clusters with faults, for linerate demo",
        description: &[
            "Builds a cluster of network namespaces and breaks something in it, to show or",
            "to try linerate without a cluster. Not for production hosts; needs root.",
        ],
        debian: "Depends: linerate (= VERSION), iproute2, nftables\n",
        rpm: "Requires: linerate = VERSION\nRequires: iproute\nRequires: nftables\n",
        documents: &["LICENSE-APACHE", "LICENSE-MIT"],
    },
];
