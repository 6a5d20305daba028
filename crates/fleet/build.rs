//! Puts node programs into the program that is built, where `LINERATE_CARRY` names their folder: files
//! `linerate-node-MACHINE.gz`. Without it nothing is carried, and `linerate` itself is the node program.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-env-changed=LINERATE_CARRY");
    let mut list = String::from("const CARRIED: &[(&str, &[u8])] = &[");
    if let Some(folder) = env::var_os("LINERATE_CARRY") {
        let mut files: Vec<_> = fs::read_dir(&folder)?.collect::<io::Result<_>>()?;
        files.sort_by_key(fs::DirEntry::path);
        for file in files {
            let path = file.path();
            println!("cargo::rerun-if-changed={}", path.display());
            let name = file.file_name().into_string().unwrap_or_default();
            let machine = name.strip_prefix("linerate-node-").and_then(|rest| rest.strip_suffix(".gz"));
            let Some(machine) = machine else { continue };
            // Writing into a `String` cannot fail.
            let _ = write!(list, "({machine:?}, include_bytes!({:?})),", path.display().to_string());
        }
    }
    list.push_str("];\n");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo names no OUT_DIR"))?;
    fs::write(Path::new(&out).join("carried.rs"), list)
}
