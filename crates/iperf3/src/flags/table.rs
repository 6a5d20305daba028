//! The flags as lists: which take a value, which are iperf3's but not ours; and the help.

/// Printed for `--help`.
pub const HELP: &str = "\
iperf3's protocol: a client for every iperf3 server, a server for every iperf3 client

usage: linerate iperf3 -s [options]
       linerate iperf3 -c HOST [options]

both:
  -p, --port N             port (5201)
  -B, --bind ADDR          own address; without it a server listens on all addresses of the host
  -4, -6                   IPv4 or IPv6 only
  -i, --interval S         seconds between reports, 0 for none (1)
  -f, --format X           unit of rates: k m g t for bits, K M G T for bytes
  -J, --json               one JSON document of iperf3's schema per test
  --json-stream            a line of JSON for each thing that happens
  --json-stream-full-output  and the whole document at the end
  --timestamps[=FORMAT]    the time before each line, in a format of strftime
  --logfile FILE           add the output to this file
  -I, --pidfile FILE       write the process id; the file is removed at the end
  -A, --affinity N[,M]     CPU of the threads, and of the server's
  --bind-dev DEV           use this network device only, also ADDR%DEV of -B and -c
  --snd-timeout MS         end a connection when sent data is not acknowledged for so long
  --cntl-ka[=IDLE/INTERVAL/COUNT]
                           probe the control connection when it is idle, seconds
  -d, --debug[=N]          trace the control connection on stderr: 3 states, 4 messages too (4)
  -V, --verbose            CPU of both ends and congestion control too
  --use-pkcs1-padding      authenticate as versions before 3.17 do
  --rcv-timeout MS         give a test up when no data came for so long (120000)

server:
  -s, --server             be the server; Ctrl-C ends it
  -D, --daemon             go on in the background once it listens
  -1, --one-off            one test only
  --rsa-private-key-path FILE, --authorized-users-path FILE
                           let only these users in; lines `user,hash`, hash: SHA-256 of `{user}password`
  --time-skew-threshold S  allowed difference of the clocks (10)
  --server-bitrate-limit R largest total rate of a test
  --server-max-duration S  longest test

client:
  -c, --client HOST        be the client
  -t, --time S             length of the test (10), 0 until Ctrl-C
  -n, --bytes N            bytes to send instead; K, M, G are powers of 1024
  -k, --blockcount N       blocks to send instead
  -u, --udp                UDP instead of TCP
  -b, --bitrate R[/N]      rate of each stream, 0 for as fast as it goes (UDP: 1M); N blocks at once
  --fq-rate R              rate that the kernel paces each stream to
  -l, --length N           block of a write or payload of a datagram
  -P, --parallel N         streams (1)
  -R, --reverse            the server sends
  --bidir                  both ends send
  -O, --omit S             seconds at the start that do not count
  -w, --window N           socket buffers
  -M, --set-mss N          largest segment
  -N, --no-delay           send small segments at once
  -C, --congestion NAME    congestion control
  -Z, --zerocopy           send pages of a file in memory (sendfile)
  -m, --mptcp              Multipath TCP
  -L, --flowlabel N        IPv6 flow label
  --gsro                   datagrams in trains (GSO and GRO)
  --skip-rx-copy           receivers do not copy; here they never do
  -S, --tos N, --dscp X    type of service: a number, or a DSCP name or number
  --cport N                own port of the first stream; the others follow
  --connect-timeout MS     how long a connection may take (10000)
  --udp-counters-64bit     wide sequence numbers in datagrams
  --dont-fragment          datagrams are sent whole or not at all
  --get-server-output      show the server's output too
  -T, --title TEXT         repeated in outputs
  --extra-data TEXT        repeated in JSON
  --username NAME, --rsa-public-key-path FILE
                           authenticate; the password is read from IPERF3_PASSWORD

K, M, G, T behind a rate are powers of 1000. exit code 0: the test went through; 1: it did not; 2: it could not start
";

/// Flags with a value that only a client has.
pub(super) const CLIENT_VALUES: &str = "-t --time -n --bytes -k --blockcount -b --bitrate --bandwidth --fq-rate \
    -l --length -P --parallel -O --omit -w --window -M --set-mss -C --congestion --linux-congestion -S --tos --dscp \
    --cport --connect-timeout -L --flowlabel -T --title --extra-data --username --rsa-public-key-path --pacing-timer";
/// Flags with a value that only a server has.
pub(super) const SERVER_VALUES: &str = "--rsa-private-key-path --authorized-users-path --time-skew-threshold \
    --server-bitrate-limit --server-max-duration";
const OTHER_VALUES: &str = "-c --client -p --port -B --bind -i --interval -f --format --rcv-timeout --idle-timeout -A \
    --affinity --bind-dev -I --pidfile --logfile --snd-timeout";

pub(super) fn is_in(list: &str, flag: &str) -> bool {
    list.split_whitespace().any(|known| known == flag)
}

pub(super) fn takes_value(flag: &str) -> bool {
    [CLIENT_VALUES, SERVER_VALUES, OTHER_VALUES].iter().any(|list| is_in(list, flag))
}

pub(super) fn unknown(flag: &str) -> String {
    let reason = match flag {
        "-F" | "--file" => "sending and receiving files is not offered",
        "-X" | "--xbind" | "--sctp" | "--nstreams" => "SCTP is not offered",
        _ => return format!("{flag} is not known here\nhint: --help"),
    };
    format!("{flag} is not known here ({reason})")
}
