//! What `drbdsetup show --show-defaults` prints, of 8.4 and of 9: blocks in braces. In: the text. Out: what
//! runs, with its options and what they belong to. A line that is none of this is passed over.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::step::{DrbdSection, DrbdSubject};

use crate::change::setting::SettingError;

/// Nothing nests deeper: resource, connection, volume, disk.
const DEPTH_MAX: usize = 8;

/// Options by name, as they are shown.
type Options = BTreeMap<String, String>;

/// A block in braces.
#[derive(Debug, Default)]
struct Block {
    /// `volume 0`.
    head: Vec<String>,
    options: Options,
    blocks: Vec<Block>,
}

impl Block {
    fn is(&self, word: &str) -> bool {
        self.head.first().is_some_and(|first| first == word)
    }

    fn all<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'a Block> {
        self.blocks.iter().filter(move |block| block.is(word))
    }

    fn options_of(&self, word: &str) -> Options {
        self.all(word).flat_map(|block| block.options.clone()).collect()
    }

    /// `volume 0`: the number.
    fn number(&self) -> Option<u32> {
        self.head.get(1)?.parse().ok()
    }
}

/// A device of a running resource.
#[derive(Debug)]
struct Device {
    minor: u32,
    options: Options,
}

/// A connection of a running resource.
#[derive(Debug)]
struct Connection {
    net: Options,
    /// Own address and that of the peer, `ipv4 10.0.0.1:7789`.
    addresses: Option<(String, String)>,
    /// Number of the peer; release 9 alone has one.
    peer: Option<u32>,
    /// Volumes with options of their own for this peer.
    volumes: Vec<(u32, Options)>,
}

/// A resource that runs here.
#[derive(Debug)]
pub(super) struct Running {
    /// Name.
    pub(super) name: String,
    devices: Vec<Device>,
    connections: Vec<Connection>,
}

/// All resources of the text.
pub(super) fn read_all(text: &str) -> Vec<Running> {
    blocks(text).iter().filter(|block| block.is("resource")).filter_map(resource).collect()
}

/// Words without quotes.
fn words(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(|word| word.trim_matches('"').to_owned()).collect()
}

fn blocks(text: &str) -> Vec<Block> {
    let mut open = vec![Block::default()];
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(head) = line.strip_suffix('{') {
            if open.len() > DEPTH_MAX {
                break;
            }
            open.push(Block { head: words(head), ..Block::default() });
        } else if line == "}" {
            if open.len() > 1
                && let (Some(done), Some(above)) = (open.pop(), open.last_mut())
            {
                above.blocks.push(done);
            }
        } else if let Some(option) = line.strip_suffix(';')
            && let Some(block) = open.last_mut()
        {
            let (name, value) =
                option.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((option, "yes"));
            block.options.insert(name.to_owned(), words(value).join(" "));
        }
    }
    // What was cut off in the middle does not count.
    open.truncate(1);
    open.pop().map(|all| all.blocks).unwrap_or_default()
}

fn resource(block: &Block) -> Option<Running> {
    let name = block.head.get(1)?.clone();
    let own: Vec<&Block> = block.all("_this_host").collect();
    let volumes = own.iter().flat_map(|host| host.all("volume"));
    let devices = volumes.filter_map(|volume| {
        let minor = volume.options.get("device")?.strip_prefix("minor ")?.parse().ok()?;
        Some(Device { minor, options: volume.options_of("disk") })
    });
    let address = |hosts: &[&Block]| hosts.iter().find_map(|host| host.options.get("address").cloned());
    let peers: Vec<&Block> = block.all("_remote_host").collect();
    let old = address(&own).zip(address(&peers)).map(|addresses| Connection {
        net: block.options_of("net"),
        addresses: Some(addresses),
        peer: None,
        volumes: Vec::new(),
    });
    let new = block.all("connection").map(|connection| {
        let path = connection.all("path").next();
        let of = |word: &str| path.and_then(|path| path.options.get(word).cloned());
        Connection {
            net: connection.options_of("net"),
            addresses: of("_this_host").zip(of("_remote_host")),
            peer: connection.options.get("_peer_node_id").and_then(|id| id.parse().ok()),
            volumes: connection
                .all("volume")
                .filter_map(|volume| Some((volume.number()?, volume.options_of("disk"))))
                .collect(),
        }
    });
    Some(Running { name, devices: devices.collect(), connections: old.into_iter().chain(new).collect() })
}

impl Running {
    /// Whether it looks for its peer or has it: one that stands alone shows no connection.
    pub(super) fn has_peer(&self) -> bool {
        !self.connections.is_empty()
    }

    /// Numbers of its devices.
    pub(super) fn minors(&self) -> impl Iterator<Item = u32> {
        self.devices.iter().map(|device| device.minor)
    }

    /// Family and address of its own end.
    pub(super) fn address(&self) -> Option<(&str, &str)> {
        self.connections.iter().find_map(|c| c.addresses.as_ref())?.0.split_once(' ')
    }

    fn all_options(&self, section: &str) -> Vec<&Options> {
        if section == "net" {
            return self.connections.iter().map(|c| &c.net).collect();
        }
        let at_peers = self.connections.iter().flat_map(|c| c.volumes.iter().map(|(_, options)| options));
        self.devices.iter().map(|device| &device.options).chain(at_peers).collect()
    }

    /// Names of the options of a section that may be told.
    pub(super) fn names(&self, section: &str) -> BTreeSet<String> {
        let all = self.all_options(section).into_iter().flat_map(BTreeMap::keys);
        // The shared secret stands among the options.
        all.filter(|name| !name.contains("secret") && !name.starts_with('_')).cloned().collect()
    }

    /// The value of an option, where all devices or connections agree.
    pub(super) fn one_value(&self, section: &str, name: &str) -> Result<String, SettingError> {
        let values: BTreeSet<&String> =
            self.all_options(section).into_iter().filter_map(|options| options.get(name)).collect();
        let mut values = values.into_iter();
        match (values.next(), values.next()) {
            (Some(one), None) => Ok(one.clone()),
            (Some(one), Some(other)) => Err(SettingError::Differ {
                resource: self.name.clone(),
                option: name.to_owned(),
                one: one.clone(),
                other: other.clone(),
            }),
            (None, _) => {
                let option = format!("{section}.{name}");
                Err(SettingError::NotShown { resource: self.name.clone(), option })
            }
        }
    }

    /// What an option of a section has to be set for.
    pub(super) fn subjects(&self, section: DrbdSection) -> Vec<DrbdSubject> {
        let colon = |address: &String| address.replacen(' ', ":", 1);
        let is_new = self.connections.iter().any(|c| c.peer.is_some());
        match section {
            DrbdSection::Net => {
                let of = |c: &Connection| match (c.peer, &c.addresses) {
                    (Some(peer), _) => Some(DrbdSubject::Peer(self.name.clone(), peer)),
                    (None, Some((own, other))) => Some(DrbdSubject::Addresses(colon(own), colon(other))),
                    (None, None) => None,
                };
                self.connections.iter().filter_map(of).collect()
            }
            DrbdSection::PeerDisk if is_new => {
                let of = |c: &Connection| -> Vec<DrbdSubject> {
                    let each = c.volumes.iter().filter_map(|(volume, _)| {
                        Some(DrbdSubject::PeerVolume(self.name.clone(), c.peer?, *volume))
                    });
                    each.collect()
                };
                self.connections.iter().flat_map(of).collect()
            }
            DrbdSection::Disk | DrbdSection::PeerDisk => {
                self.devices.iter().map(|device| DrbdSubject::Device(device.minor)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = include_str!("fixtures/show-8.4.txt");
    const NEW: &str = include_str!("fixtures/show-9.txt");

    #[test]
    fn a_resource_of_8_4_shows_its_options_and_what_they_belong_to() {
        let all = read_all(OLD);
        let [r0] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!(r0.name, "r0");
        assert!(r0.has_peer());
        assert_eq!(r0.address(), Some(("ipv4", "10.79.0.1:7789")));
        assert_eq!(r0.one_value("disk", "al-extents").as_deref(), Ok("1237"));
        assert_eq!(r0.one_value("net", "max-buffers").as_deref(), Ok("8000"));
        assert_eq!(r0.one_value("disk", "c-max-rate").as_deref(), Ok("102400k"));
        assert!(r0.one_value("net", "nonsense").is_err());
        assert_eq!(
            r0.subjects(DrbdSection::Net),
            [DrbdSubject::Addresses("ipv4:10.79.0.1:7789".into(), "ipv4:10.79.0.2:7789".into())]
        );
        assert_eq!(r0.subjects(DrbdSection::PeerDisk), [DrbdSubject::Device(0)]);
        assert!(r0.names("net").iter().all(|name| !name.contains("secret")));
    }

    #[test]
    fn a_resource_of_9_has_its_options_at_peers() {
        let all = read_all(NEW);
        let [r0] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!(r0.subjects(DrbdSection::Net), [DrbdSubject::Peer("r0".into(), 1)]);
        assert_eq!(r0.subjects(DrbdSection::Disk), [DrbdSubject::Device(0)]);
        assert_eq!(r0.subjects(DrbdSection::PeerDisk), [DrbdSubject::PeerVolume("r0".into(), 1, 0)]);
        assert_eq!(r0.one_value("disk", "c-max-rate").as_deref(), Ok("102400k"));
        assert_eq!(r0.address(), Some(("ipv4", "10.79.0.1:7789")));
    }

    #[test]
    fn torn_and_strange_texts_are_no_resources() {
        for end in 0..OLD.len() {
            let Some(torn) = OLD.get(..end) else { continue };
            for resource in read_all(torn) {
                assert_eq!(resource.name, "r0");
            }
        }
        assert!(read_all(&"{\n".repeat(1000)).is_empty());
        assert!(read_all(&"}\n".repeat(1000)).is_empty());
        assert!(read_all("resource {\n}\n").is_empty());
    }
}
