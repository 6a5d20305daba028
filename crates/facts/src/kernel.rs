//! Facts `kernel.*` and `module.*`: which kernel runs, how it was started, and from where the drivers of the
//! network devices were loaded. A driver from `weak-updates` was built for another kernel.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::fact::FactDecl;

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::View;

/// The topic.
pub(super) struct Kernel;

/// Folders of modules that do not belong to the kernel.
const STRAY: [&str; 3] = ["weak-updates/", "extra/", "updates/"];

impl Fact for Kernel {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            fact("kernel.release", "text", "Release of the kernel."),
            fact("kernel.version", "text", "Build of the kernel."),
            fact("kernel.cmdline", "text", "Command line of the kernel."),
            fact(
                "module.*.path",
                "text",
                "From where a driver of a network device, or any module that does not belong to the kernel, was loaded; builtin when it is part of the kernel.",
            ),
            fact("module.*.version", "text", "Version that the module tells."),
        ]
    }

    fn of_namespace(&self) -> bool {
        false
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        let release = view.root.line("/proc/sys/kernel/osrelease");
        for (key, file) in [("release", "osrelease"), ("version", "version")] {
            match view.root.line(&format!("/proc/sys/kernel/{file}")) {
                Ok(text) => out.text(format!("kernel.{key}"), text),
                Err(error) => out.gap(format!("kernel.{key}"), &error),
            }
        }
        match view.root.line("/proc/cmdline") {
            Ok(text) => out.text("kernel.cmdline", text),
            Err(error) => out.gap("kernel.cmdline", &error),
        }
        read_modules(view, release.ok().as_deref(), out);
    }
}

fn read_modules(view: &View<'_>, release: Option<&str>, out: &mut Readings) {
    let loaded: BTreeSet<String> = view
        .root
        .read("/proc/modules")
        .unwrap_or_default()
        .lines()
        .filter_map(|l| l.split(' ').next().map(String::from))
        .collect();
    let dependencies = release
        .filter(|r| !r.contains('/'))
        .map(|r| view.root.read(&format!("/lib/modules/{r}/modules.dep")))
        .and_then(Result::ok);
    let paths = dependencies.as_deref().map(paths_of).unwrap_or_default();
    let drivers: BTreeSet<String> = view
        .nics()
        .values()
        .filter_map(|n| n.driver.as_ref())
        .map(|d| d.name.replace('-', "_"))
        // Drivers name themselves freely (`802.1Q VLAN Support`); only those that are modules are looked up.
        .filter(|d| !d.contains(['/', ' ']) && !d.is_empty())
        .collect();
    for module in drivers.iter().chain(&loaded).collect::<BTreeSet<_>>() {
        let path = paths.get(module.as_str());
        let stray = path.is_some_and(|p| STRAY.iter().any(|f| p.starts_with(f)));
        if !drivers.contains(module) && !stray {
            continue;
        }
        let folder = format!("/sys/module/{module}");
        if !loaded.contains(module) {
            if view.root.list(&folder).is_ok() {
                out.text(format!("module.{module}.path"), "builtin");
            }
        } else if let Some(path) = path {
            out.text(format!("module.{module}.path"), *path);
        } else {
            out.gap_of("module.*.path", "the list of modules of this kernel cannot be read", module);
        }
        if let Ok(version) = view.root.line(&format!("{folder}/version")) {
            out.text(format!("module.{module}.version"), version);
        }
    }
}

/// Name of a module to its path in `modules.dep`.
fn paths_of(dependencies: &str) -> BTreeMap<String, &str> {
    dependencies
        .lines()
        .filter_map(|line| {
            let (path, _) = line.split_once(':')?;
            let file = path.rsplit('/').next()?;
            let name = file.split(".ko").next()?.replace('-', "_");
            Some((name, path))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_by_name() {
        let paths = paths_of("weak-updates/mlx4_en.ko: x\nkernel/drivers/net/virtio-net.ko.xz:\n\u{fffd}\n");
        assert_eq!(paths["mlx4_en"], "weak-updates/mlx4_en.ko");
        assert_eq!(paths["virtio_net"], "kernel/drivers/net/virtio-net.ko.xz");
    }
}
