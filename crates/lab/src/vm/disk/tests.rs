//! Drives over their real socket, by the protocol: what they keep, what they forget, what they refuse, and
//! clients that talk nonsense.
#![allow(clippy::unwrap_used)]

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;

const SIZE: u64 = 1 << 20;
const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const FUA: u16 = 1;
/// Far above what an answer takes.
const PATIENCE: Duration = Duration::from_secs(60);

struct Scene {
    drive: Arc<Drive>,
    server: NbdServer,
    folder: PathBuf,
}

impl Scene {
    fn new(name: &str, behaviour: Behaviour) -> Self {
        let folder = std::env::temp_dir().join(format!("linerate-drive-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let drive = Arc::new(Drive::create("d1", SIZE, behaviour, &folder.join("d1")).unwrap());
        let server = NbdServer::start(&[Arc::clone(&drive)], &folder.join("sock")).unwrap();
        Self { drive, server, folder }
    }

    fn with_cache(name: &str, cache: Cache) -> Self {
        Self::new(name, Behaviour { cache, ..Behaviour::default() })
    }

    fn dial(&self) -> UnixStream {
        let stream = UnixStream::connect(self.server.path()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn client(&self) -> Client {
        let mut stream = self.dial();
        assert_eq!(take(&mut stream, 18)[..16], *b"NBDMAGICIHAVEOPT");
        stream.write_all(&3_u32.to_be_bytes()).unwrap();
        stream.write_all(&option(7, &named("d1"))).unwrap();
        loop {
            let head = take(&mut stream, 20);
            let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
            let data = take(&mut stream, number(16) as usize);
            match number(12) {
                // NBD_REP_INFO: of the export its size.
                3 if data[..2] == [0, 0] => assert_eq!(data[2..10], SIZE.to_be_bytes()),
                3 => {}
                1 => return Client(stream),
                other => panic!("reply {other:#x}"),
            }
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn take(stream: &mut UnixStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", &number.to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), data].concat()
}

fn named(name: &str) -> Vec<u8> {
    [&(name.len() as u32).to_be_bytes()[..], name.as_bytes(), &[0, 0]].concat()
}

fn request(flags: u16, command: u16, offset: u64, length: u32) -> Vec<u8> {
    let parts: [&[u8]; 6] = [
        &0x2560_9513_u32.to_be_bytes(),
        &flags.to_be_bytes(),
        &command.to_be_bytes(),
        &77_u64.to_be_bytes(),
        &offset.to_be_bytes(),
        &length.to_be_bytes(),
    ];
    parts.concat()
}

struct Client(UnixStream);

impl Client {
    fn ask(&mut self, flags: u16, command: u16, offset: u64, length: u32, data: &[u8]) -> u32 {
        self.0.write_all(&[&request(flags, command, offset, length), data].concat()).unwrap();
        let head = take(&mut self.0, 16);
        assert_eq!((&head[..4], &head[8..]), (&[0x67, 0x44, 0x66, 0x98][..], &77_u64.to_be_bytes()[..]));
        u32::from_be_bytes(head[4..8].try_into().unwrap())
    }

    fn write(&mut self, offset: u64, byte: u8, flags: u16) -> u32 {
        self.ask(flags, WRITE, offset, 4096, &[byte; 4096])
    }

    /// All bytes of a block, when they are the same.
    fn read(&mut self, offset: u64) -> Result<u8, u32> {
        match self.ask(0, READ, offset, 4096, &[]) {
            0 => {
                let data = take(&mut self.0, 4096);
                assert!(data.iter().all(|byte| *byte == data[0]));
                Ok(data[0])
            }
            error => Err(error),
        }
    }

    fn flush(&mut self) -> u32 {
        self.ask(0, FLUSH, 0, 0, &[])
    }
}

#[test]
fn what_was_written_is_read_and_counted() {
    let scene = Scene::with_cache("plain", Cache::None);
    let mut client = scene.client();
    assert_eq!((client.write(8192, 7, 0), client.read(8192), client.read(0)), (0, Ok(7), Ok(0)));
    assert_eq!(client.flush(), 0);
    // Another client sees the same drive.
    assert_eq!(scene.client().read(8192), Ok(7));
    let seen = scene.drive.counters();
    let wanted = Counters {
        reads: 3,
        writes: 1,
        flushes: 1,
        bytes_read: 3 * 4096,
        bytes_written: 4096,
        ..Counters::default()
    };
    assert_eq!(seen, wanted);
    scene.server.hang_up();
    assert_eq!(scene.drive.power_cut(Keep::Nothing, 1).unwrap(), 0, "there is no cache to lose");
    assert_eq!(scene.client().read(8192), Ok(7));
}

#[test]
fn a_volatile_cache_forgets_what_was_neither_flushed_nor_forced() {
    let scene = Scene::with_cache("volatile", Cache::Volatile);
    let mut client = scene.client();
    client.write(0, 1, 0);
    client.flush();
    client.write(0, 2, 0);
    client.write(4096, 3, FUA);
    client.write(8192, 4, 0);
    assert_eq!(client.read(0), Ok(2), "until the power goes the last write is there");
    scene.server.hang_up();
    // FUA wrote everything back that was in the cache.
    assert_eq!(scene.drive.power_cut(Keep::Nothing, 1).unwrap(), 8);
    let mut client = scene.client();
    assert_eq!((client.read(0), client.read(4096), client.read(8192)), (Ok(2), Ok(3), Ok(0)));
    assert_eq!(scene.drive.counters().sectors_lost, 8);
}

#[test]
fn a_lying_drive_acknowledges_flushes_and_loses_all_the_same() {
    let scene = Scene::with_cache("lying", Cache::Lying);
    let mut client = scene.client();
    assert_eq!((client.write(0, 9, FUA), client.flush()), (0, 0));
    let seen = scene.drive.counters();
    assert_eq!((seen.flushes, seen.lies, seen.sectors_unflushed), (0, 2, 8));
    scene.server.hang_up();
    assert_eq!(scene.drive.power_cut(Keep::Nothing, 1).unwrap(), 8);
    assert_eq!(scene.client().read(0), Ok(0));
    // Made honest, it writes back what it had kept to itself.
    scene.client().write(0, 5, 0);
    scene.drive.behave(|b| b.cache = Cache::None).unwrap();
    assert_eq!(scene.drive.counters().sectors_unflushed, 0);
}

#[test]
fn a_half_survives_sector_by_sector_and_the_same_seed_chooses_the_same() {
    let survivors = |seed: u64| {
        let scene = Scene::with_cache(&format!("half-{seed}"), Cache::Volatile);
        let mut client = scene.client();
        for block in 0..64 {
            client.write(block * 4096, 1, 0);
        }
        scene.server.hang_up();
        let lost = scene.drive.power_cut(Keep::Half, seed % 10).unwrap();
        let mut bytes = vec![0; 64 * 4096];
        lock(&scene.drive.medium).read(0, &mut bytes).unwrap();
        let kept: Vec<bool> = bytes.chunks(SECTOR_BYTES).map(|sector| sector[0] == 1).collect();
        assert_eq!(kept.iter().filter(|k| !**k).count() as u64, lost);
        kept
    };
    let one = survivors(1);
    // 512 sectors: fewer than 150 or more than 362 of them is beyond nine standard deviations.
    assert!((150..362).contains(&one.iter().filter(|k| **k).count()));
    assert_eq!(one, survivors(11));
    assert_ne!(one, survivors(2));
}

#[test]
fn a_slow_drive_takes_its_time_and_becomes_fast_at_run_time() {
    let scene = Scene::new("slow", Behaviour { ops_per_s: 100.0, ..Behaviour::default() });
    let mut client = scene.client();
    let begin = Instant::now();
    for _ in 0..20 {
        assert_eq!(client.read(0), Ok(0));
    }
    // The first may begin at once; a late thread is made up for, by little.
    assert!(begin.elapsed() >= Duration::from_millis(150), "{:?}", begin.elapsed());
    scene.drive.behave(|b| b.delay_ms = 10_000.0).unwrap();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.read(0));
        scene.drive.behave(|b| *b = Behaviour::default()).unwrap();
        assert_eq!(waiting.join().unwrap(), Ok(0));
    });
    assert!(begin.elapsed() < Duration::from_secs(9), "{:?}", begin.elapsed());
    assert!(scene.drive.behave(|b| b.ops_per_s = f64::NAN).is_err());
}

#[test]
fn a_broken_range_and_a_drive_that_is_gone_answer_with_errors() {
    let scene = Scene::with_cache("broken", Cache::None);
    let mut client = scene.client();
    scene.drive.behave(|b| b.fails = Some(4096..8192)).unwrap();
    assert_eq!((client.read(0), client.read(4096), client.write(4096, 1, 0)), (Ok(0), Err(5), 5));
    assert_eq!(client.read(8192), Ok(0));
    scene.drive.behave(|b| (b.fails, b.gone) = (None, true)).unwrap();
    assert_eq!((client.read(0), client.flush()), (Err(5), 5));
    scene.drive.behave(|b| b.gone = false).unwrap();
    assert_eq!((client.read(4096), scene.drive.counters().errors), (Ok(0), 4));
}

#[test]
fn requests_out_of_range_are_refused_and_nothing_breaks() {
    let scene = Scene::with_cache("nowhere", Cache::None);
    let mut client = scene.client();
    for (offset, length) in
        [(SIZE, 4096), (u64::MAX, 4096), (u64::MAX - 4095, 4096), (1, 512), (0, 100), (SIZE - 512, 1024)]
    {
        assert_eq!(client.ask(0, READ, offset, length, &[]), nbd::EINVAL, "{offset} {length}");
        assert_eq!(client.ask(0, WRITE, offset, length, &vec![1; length as usize]), nbd::EINVAL);
    }
    // A command that was not offered.
    assert_eq!(client.ask(0, 4, 0, 512, &[]), nbd::EINVAL);
    assert_eq!(client.read(0), Ok(0));
}

#[test]
fn clients_that_talk_nonsense_lose_their_connection_and_no_others_do() {
    let scene = Scene::with_cache("nonsense", Cache::None);
    let mut good = scene.client();
    let flags = 3_u32.to_be_bytes();
    let long = [b"IHAVEOPT", &7_u32.to_be_bytes()[..], &u32::MAX.to_be_bytes()].concat();
    let huge = [&flags[..], &option(7, &named("d1")), &request(0, WRITE, 0, u32::MAX)].concat();
    let many: Vec<u8> = flags.into_iter().chain((0..100).flat_map(|_| option(99, b""))).collect();
    let openings: [&[u8]; 8] = [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        &[0xff; 4096],
        &[&flags[..], &long].concat(),
        &[&flags[..], &option(1, b"no such drive")].concat(),
        &[&flags[..], &option(7, b"\xff\xff\xff\xff")].concat(),
        &huge,
        &many,
    ];
    for (number, opening) in openings.into_iter().enumerate() {
        let mut stream = scene.dial();
        // The server may have hung up before it read everything.
        let _ = stream.write_all(opening);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        assert!(
            ended.is_ok() || ended.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset),
            "opening {number}"
        );
        assert_eq!(good.read(0), Ok(0), "after opening {number}");
    }
    // Random bytes after a good handshake, the same ones each time.
    let mut random = linerate_model::random::Random(5);
    for _ in 0..50 {
        let noise: Vec<u8> = (0..64).map(|_| random.below(256) as u8).collect();
        let mut client = scene.client();
        let _ = client.0.write_all(&noise);
    }
    assert_eq!(good.read(0), Ok(0));
}

#[test]
fn a_list_names_the_drives_and_an_unknown_name_is_answered() {
    let scene = Scene::with_cache("list", Cache::None);
    let mut stream = scene.dial();
    take(&mut stream, 18);
    stream.write_all(&3_u32.to_be_bytes()).unwrap();
    stream.write_all(&option(3, b"")).unwrap();
    let head = take(&mut stream, 20);
    assert_eq!((head[12..16].to_vec(), take(&mut stream, 6)), (vec![0, 0, 0, 2], b"\0\0\0\x02d1".to_vec()));
    take(&mut stream, 20);
    stream.write_all(&option(6, &named("d2"))).unwrap();
    assert_eq!(take(&mut stream, 20)[12..16], ((1_u32 << 31) + 6).to_be_bytes());
    stream.write_all(&option(2, b"")).unwrap();
    assert_eq!(take(&mut stream, 20)[12..16], 1_u32.to_be_bytes());
}
