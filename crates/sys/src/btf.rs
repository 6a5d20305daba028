//! Offsets of members of the kernel's structs (BTF, `Documentation/bpf/btf.rst`).
//!
//! In: `/sys/kernel/btf/vmlinux`, the names of a struct and a member. Out: where the member begins. A kernel
//! without that file, or a struct of another layout, has none.

use std::io;

/// The types of the running kernel.
const KERNEL: &str = "/sys/kernel/btf/vmlinux";
/// A kernel of today has five million bytes.
const BYTES_MAX: usize = 64 << 20;
const MAGIC: u16 = 0xeb9f;
/// `struct btf_type` before what its kind adds.
const TYPE_BYTES: usize = 12;
const MEMBER_BYTES: usize = 12;
/// Kinds of `BTF_KIND_*`.
const STRUCT: u32 = 4;
const UNION: u32 = 5;
/// Structs without a name that stand inside each other.
const DEPTH_MAX: u32 = 8;

/// Types of a kernel.
#[derive(Debug)]
pub struct Btf {
    bytes: Vec<u8>,
    strings: usize,
    /// Where each type begins; the first one has the number 1.
    types: Vec<usize>,
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_ne_bytes)
}

/// Bytes that a kind adds to each type; `None` for kinds that are not known.
fn more(kind: u32, members: usize) -> Option<usize> {
    match kind {
        // Pointers, forward declarations, names, qualifiers, functions, floats, tags of types.
        2 | 7..=12 | 16 | 18 => Some(0),
        // Integers, variables, tags of declarations.
        1 | 14 | 17 => Some(4),
        3 => Some(12),
        STRUCT | UNION | 15 | 19 => Some(members * MEMBER_BYTES),
        6 | 13 => Some(members * 8),
        _ => None,
    }
}

impl Btf {
    /// The types of the running kernel.
    ///
    /// # Errors
    /// It was built without them, or they cannot be parsed.
    pub fn of_kernel() -> io::Result<Self> {
        let bytes = crate::bounded::read(KERNEL.as_ref(), BYTES_MAX)?;
        Self::parse(bytes)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its types cannot be parsed"))
    }

    fn parse(bytes: Vec<u8>) -> Option<Self> {
        let magic = bytes.get(..2)?.try_into().ok().map(u16::from_ne_bytes)?;
        let field = |at: usize| number(&bytes, at).map(|value| value as usize);
        let header = field(4)?;
        let (first, length) = (header.checked_add(field(8)?)?, field(12)?);
        let (strings, end) = (header.checked_add(field(16)?)?, first.checked_add(length)?);
        if magic != MAGIC || end > bytes.len() {
            return None;
        }
        let (mut types, mut at) = (Vec::new(), first);
        while at < end {
            types.push(at);
            let info = number(&bytes, at + 4)?;
            at += TYPE_BYTES + more(info >> 24 & 0x1f, (info & 0xffff) as usize)?;
        }
        Some(Self { bytes, strings, types })
    }

    fn is_named(&self, at: usize, name: &str) -> bool {
        let start = number(&self.bytes, at).map(|offset| self.strings + offset as usize);
        let rest = start.and_then(|start| self.bytes.get(start..)).unwrap_or_default();
        rest.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    }

    /// Where a member of a struct begins, bytes from its beginning.
    #[must_use]
    pub fn offset(&self, structure: &str, member: &str) -> Option<i32> {
        let is_it = |at: &&usize| {
            number(&self.bytes, **at + 4).is_some_and(|info| info >> 24 & 0x1f == STRUCT)
                && self.is_named(**at, structure)
        };
        let bits = self.types.iter().filter(is_it).find_map(|at| self.bits(*at, member, DEPTH_MAX))?;
        (bits % 8 == 0).then(|| i32::try_from(bits / 8).ok()).flatten()
    }

    /// Where a member begins, bits; members of structs without a name are members of what is around them.
    fn bits(&self, at: usize, member: &str, depth: u32) -> Option<u32> {
        let info = number(&self.bytes, at + 4)?;
        if !matches!(info >> 24 & 0x1f, STRUCT | UNION) || depth == 0 {
            return None;
        }
        (0..(info & 0xffff) as usize).find_map(|index| {
            let one = at + TYPE_BYTES + index * MEMBER_BYTES;
            let offset = number(&self.bytes, one + 8)?;
            // With bit fields the upper byte is the width of the field.
            let offset = if info >> 31 == 1 { offset & 0xff_ffff } else { offset };
            if self.is_named(one, member) {
                return Some(offset);
            }
            let inner = self.is_named(one, "").then(|| number(&self.bytes, one + 4)).flatten()?;
            let inner = self.types.get((inner as usize).checked_sub(1)?)?;
            Some(offset + self.bits(*inner, member, depth - 1)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types of `struct outer { int a; union { int b; int c; }; }`.
    fn small() -> Vec<u8> {
        let strings = b"\0outer\0a\0b\0c\0";
        let types: Vec<u32> = vec![
            0,
            1 << 24,
            4,
            32, // int, without a name
            0,
            UNION << 24 | 2,
            4,
            9,
            1,
            0,
            11,
            1,
            0, // union with b and c
            1,
            STRUCT << 24 | 2,
            8,
            7,
            1,
            0,
            0,
            2,
            32, // struct with a and the union
        ];
        let length = types.len() as u32 * 4;
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        for field in [24, 0, length, length, strings.len() as u32].iter().chain(&types) {
            bytes.extend(field.to_ne_bytes());
        }
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn members_are_found_also_in_structs_without_a_name() {
        let btf = Btf::parse(small()).unwrap();
        let of = |member| btf.offset("outer", member);
        assert_eq!((of("a"), of("b"), of("c"), of("d")), (Some(0), Some(4), Some(4), None));
        assert_eq!(btf.offset("oute", "a"), None);
    }

    #[test]
    fn torn_types_are_none() {
        let whole = small();
        for end in 0..whole.len() - 13 {
            assert!(Btf::parse(whole[..end].to_vec()).is_none(), "{end}");
        }
    }

    #[test]
    fn the_running_kernel_has_its_structs() {
        match Btf::of_kernel() {
            Ok(btf) => {
                assert_eq!(btf.offset("list_head", "prev"), Some(size_of::<usize>() as i32));
                assert!(btf.offset("nsproxy", "net_ns").is_some());
            }
            Err(error) => println!("SKIPPED the_running_kernel_has_its_structs: {error}"),
        }
    }
}
