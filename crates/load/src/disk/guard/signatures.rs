//! Marks that owners leave on a device: file systems, volume managers, arrays, replication, swap, encryption,
//! partition tables.
//!
//! What comes in: the first and the last MiB of a device. What goes out: whose mark is there. Offsets and
//! marks are those of the owners' formats as libblkid (util-linux) and their own sources name them. To add
//! one: one line in [`SIGNATURES`].

/// Where a mark is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offset {
    /// At this byte.
    Start(u64),
    /// So many bytes before the end.
    End(u64),
    /// md 0.90: in the last whole 64 KiB (`MD_NEW_SIZE_SECTORS` of linux/raid/md_p.h).
    OldArray,
    /// md 1.0: 8 KiB or a bit more before the end, at a multiple of 4 KiB (drivers/md/md.c, `super_1_load`).
    NewArray,
    /// Of the last whole 4 KiB, at this byte: metadata of DRBD inside its device.
    LastPage(u64),
}

/// A mark.
#[derive(Debug)]
pub(super) struct Signature {
    /// Whose.
    pub owner: &'static str,
    /// Where.
    pub offset: Offset,
    /// What.
    pub mark: &'static [u8],
}

const fn at(owner: &'static str, start: u64, mark: &'static [u8]) -> Signature {
    Signature { owner, offset: Offset::Start(start), mark }
}

const fn mark(owner: &'static str, offset: Offset, mark: &'static [u8]) -> Signature {
    Signature { owner, offset, mark }
}

/// `MD_SB_MAGIC`, 0xa92b4efc.
const MD: &[u8] = b"\xfc\x4e\x2b\xa9";
/// The same of a machine with the other order of bytes.
const MD_BIG: &[u8] = b"\xa9\x2b\x4e\xfc";

/// All marks. Those of partition tables come last: a boot sector is also part of some file systems.
pub(super) static SIGNATURES: &[Signature] = &[
    at("LVM", 0, b"LABELONE"),
    at("LVM", 512, b"LABELONE"),
    at("LVM", 1024, b"LABELONE"),
    at("LVM", 1536, b"LABELONE"),
    mark("md array (0.90)", Offset::OldArray, MD),
    mark("md array (0.90)", Offset::OldArray, MD_BIG),
    mark("md array (1.0)", Offset::NewArray, MD),
    at("md array (1.1)", 0, MD),
    at("md array (1.2)", 4096, MD),
    // drbd_int.h: DRBD_MD_MAGIC_07, _08, _84_UNCLEAN, _09; the magic is the field at byte 60 of the
    // superblock.
    mark("DRBD", Offset::LastPage(60), b"\x83\x74\x02\x6b"),
    mark("DRBD", Offset::LastPage(60), b"\x83\x74\x02\x6c"),
    mark("DRBD", Offset::LastPage(60), b"\x83\x74\x02\x6d"),
    // Metadata on a device of their own begin with the superblock.
    at("DRBD (metadata)", 60, b"\x83\x74\x02\x6b"),
    at("DRBD (metadata)", 60, b"\x83\x74\x02\x6c"),
    at("DRBD (metadata)", 60, b"\x83\x74\x02\x6d"),
    at("LUKS", 0, b"LUKS\xba\xbe"),
    at("LUKS (second header)", 0x4000, b"SKUL\xba\xbe"),
    at("LUKS (second header)", 0x8000, b"SKUL\xba\xbe"),
    at("BitLocker", 3, b"-FVE-FS-"),
    at("swap", 4086, b"SWAPSPACE2"),
    at("swap", 4086, b"SWAP-SPACE"),
    at("swap", 16_374, b"SWAPSPACE2"),
    at("swap", 65_526, b"SWAPSPACE2"),
    at("hibernated system", 4086, b"S1SUSPEND"),
    at("ext2, ext3 or ext4", 1080, b"\x53\xef"),
    at("XFS", 0, b"XFSB"),
    at("btrfs", 65_600, b"_BHRfS_M"),
    at("F2FS", 1024, b"\x10\x20\xf5\xf2"),
    at("NILFS2", 1030, b"\x34\x34"),
    at("EROFS", 1024, b"\xe2\xe1\xf5\xe0"),
    at("squashfs", 0, b"hsqs"),
    at("ZFS", 131_072, b"\x0c\xb1\xba\x00\x00\x00\x00\x00"),
    at("ZFS", 131_072, b"\x00\x00\x00\x00\x00\xba\xb1\x0c"),
    at("bcache", 4120, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    at("bcachefs", 4120, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    at("Ceph", 0, b"bluestore block device"),
    at("GFS2", 65_536, b"\x01\x16\x19\x70"),
    at("OCFS2", 4096, b"OCFSV2"),
    at("OCFS2", 8192, b"OCFSV2"),
    at("JFS", 32_768, b"JFS1"),
    at("ReiserFS", 65_588, b"ReIsEr"),
    at("Oracle ASM", 32, b"ORCLDISK"),
    at("HFS+", 1024, b"H+"),
    at("APFS", 32, b"NXSB"),
    at("NTFS", 3, b"NTFS    "),
    at("exFAT", 3, b"EXFAT   "),
    at("FAT", 54, b"FAT1"),
    at("FAT", 82, b"FAT32   "),
    at("ISO 9660", 32_769, b"CD001"),
    mark("firmware RAID (Intel)", Offset::End(1024), b"Intel Raid ISM Cfg"),
    mark("firmware RAID (DDF)", Offset::End(512), b"\xde\x11\xde\x11"),
    at("GPT", 512, b"EFI PART"),
    at("GPT", 4096, b"EFI PART"),
    mark("GPT (backup)", Offset::End(512), b"EFI PART"),
    mark("GPT (backup)", Offset::End(4096), b"EFI PART"),
    at("partition table or boot sector", 510, b"\x55\xaa"),
];

/// The byte of a device of this size at which a mark is.
pub(super) fn byte_of(offset: Offset, size: u64) -> Option<u64> {
    match offset {
        Offset::Start(byte) => Some(byte),
        Offset::End(before) => size.checked_sub(before),
        Offset::OldArray => (size & !0xffff).checked_sub(0x1_0000),
        Offset::NewArray => Some(size.checked_sub(8192)? & !4095),
        Offset::LastPage(byte) => Some((size & !4095).checked_sub(4096)? + byte),
    }
}

/// Whose mark is on a device of this size, by its first and its last bytes.
pub(super) fn find(head: &[u8], tail: &[u8], size: u64) -> Option<(&'static str, u64)> {
    find_where(head, tail, size, &|_, _| true)
}

/// The first of some marks, chosen by the mark and its byte.
pub(super) fn find_where(
    head: &[u8],
    tail: &[u8],
    size: u64,
    is_wanted: &dyn Fn(&Signature, u64) -> bool,
) -> Option<(&'static str, u64)> {
    let tail_start = size.saturating_sub(tail.len() as u64);
    SIGNATURES.iter().find_map(|signature| {
        let byte = byte_of(signature.offset, size).filter(|byte| is_wanted(signature, *byte))?;
        let within = |part: &[u8], start: u64| {
            let from = usize::try_from(byte.checked_sub(start)?).ok()?;
            let here = part.get(from..from.checked_add(signature.mark.len())?)?;
            (here == signature.mark).then_some(())
        };
        within(head, 0).or_else(|| within(tail, tail_start)).map(|()| (signature.owner, byte))
    })
}
