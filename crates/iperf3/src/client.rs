//! The client's side of a control connection, as a pure state machine.
//!
//! What comes in: bytes of the server in pieces of any size, and what our side has done. What goes out: bytes
//! to send, and events that name the next step. No I/O, no clock: the driver sets the deadlines.

use std::collections::VecDeque;

use super::protocol::{Cookie, Inbox, OUTPUT_BYTES_MAX, RESULTS_BYTES_MAX, State, Violation, framed, number};
use super::results::Results;

/// What the client's driver has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientAction {
    /// Open the streams, in order.
    OpenStreams,
    /// All streams are there: start the clocks.
    Start,
    /// Go.
    Run,
    /// Stop counting and hand over the results with [`Client::results`].
    Results,
    /// The server's results are here: print, close the streams, call [`Client::finish`].
    Finished(Box<Results>),
    /// It is over before its end. Nothing follows.
    Failed(ClientFailure),
}

/// Why a test ended early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientFailure {
    /// The server serves another client.
    #[error("the server is busy running a test; try again later")]
    Busy,
    /// The server was stopped.
    #[error("the server was stopped")]
    ServerStopped,
    /// The client was stopped.
    #[error("the client was stopped")]
    ClientStopped,
    /// The server reports why.
    #[error("the server refuses: {} (iperf3 error {number}{}){}", number::words(*number),
        if *errno == 0 { String::new() } else { format!(", system error {errno}") },
        number::hint(*number).map_or(String::new(), |hint| format!("\nhint: {hint}")))]
    Refused {
        /// iperf3's number.
        number: i32,
        /// The system's.
        errno: i32,
    },
    /// The peer broke the protocol or went away.
    #[error(transparent)]
    Violation(#[from] Violation),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Parameters,
    CreateStreams,
    /// Until the server has all streams.
    Streams,
    Running,
    /// The end was sent.
    Ending,
    /// Ours are wanted.
    OwnResults,
    TheirResults,
    Display,
    /// Ours to finish.
    Finishing,
    Refusal,
    Over,
}

impl Step {
    fn words(self) -> &'static str {
        match self {
            Self::Parameters => "the word to send parameters",
            Self::CreateStreams => "the word to open streams",
            Self::Streams => "the start of the test",
            Self::Running => "the test",
            Self::Ending => "the exchange of results",
            Self::OwnResults | Self::TheirResults => "the server's results",
            Self::Display | Self::Finishing => "the end of the test",
            Self::Refusal => "the server's reason",
            Self::Over => "nothing",
        }
    }
}

/// The client.
#[derive(Debug)]
pub struct Client {
    step: Step,
    parameters: Vec<u8>,
    inbox: Inbox,
    output: Vec<u8>,
    events: VecDeque<ClientAction>,
    theirs: Option<Box<Results>>,
    /// The server's output was asked for.
    wants_output: bool,
}

impl Client {
    /// A client that shows this cookie and sends this parameter message.
    pub fn new(cookie: &Cookie, parameters: Vec<u8>) -> Self {
        Self {
            step: Step::Parameters,
            parameters,
            inbox: Inbox::default(),
            output: cookie.to_vec(),
            events: VecDeque::new(),
            theirs: None,
            wants_output: false,
        }
    }

    /// The same for one whose parameters ask for the server's output.
    #[must_use]
    pub fn wanting_output(mut self, wants: bool) -> Self {
        self.wants_output = wants;
        self
    }

    fn results_max(&self) -> usize {
        if self.wants_output { OUTPUT_BYTES_MAX } else { RESULTS_BYTES_MAX }
    }

    /// Bytes to send.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// What is to be done next.
    pub fn poll_event(&mut self) -> Option<ClientAction> {
        self.events.pop_front()
    }

    /// Whether nothing more is to come.
    pub fn is_over(&self) -> bool {
        self.step == Step::Over
    }

    /// What is waited for, for the words about a deadline.
    pub fn waits_for(&self) -> &'static str {
        self.step.words()
    }

    /// Bytes of the server.
    pub fn received(&mut self, bytes: &[u8]) {
        if self.is_over() {
            return;
        }
        self.inbox.push(bytes);
        loop {
            match self.advance() {
                Ok(true) => {}
                Ok(false) => break,
                Err(failure) => return self.fail(failure),
            }
        }
        let waiting = self.inbox.len();
        if waiting > self.results_max() + (64 << 10) {
            self.fail(Violation::Flood { bytes: waiting }.into());
        }
    }

    /// The server closed its end.
    pub fn closed(&mut self) {
        // Servers before 3.17 send no system error behind "not authorised".
        if self.step == Step::Refusal
            && let Some(number) = self.inbox.take::<4>()
        {
            return self.fail(ClientFailure::Refused { number: i32::from_be_bytes(number), errno: 0 });
        }
        if !self.is_over() {
            self.fail(Violation::Closed { during: self.step.words() }.into());
        }
    }

    /// The test has lasted long enough, and our senders have stopped.
    pub fn end_test(&mut self) {
        if self.step == Step::Running {
            self.output.push(State::TestEnd.byte());
            self.step = Step::Ending;
        }
    }

    /// Our results.
    pub fn results(&mut self, results: &Results) {
        if self.step == Step::OwnResults {
            self.output.extend(framed(&results.to_json()));
            self.step = Step::TheirResults;
            // The server may have been faster than we.
            self.received(&[]);
        }
    }

    /// Everything is printed and closed.
    pub fn finish(&mut self) {
        if self.step == Step::Finishing {
            self.output.push(State::Done.byte());
            self.step = Step::Over;
        }
    }

    /// We are stopped from outside.
    pub fn stop(&mut self) {
        if !self.is_over() {
            self.output.push(State::ClientTerminate.byte());
            self.fail(ClientFailure::ClientStopped);
        }
    }

    fn fail(&mut self, failure: ClientFailure) {
        self.step = Step::Over;
        self.events.push_back(ClientAction::Failed(failure));
    }

    /// Takes one thing out of the inbox; `false` when there is none, or it is our turn.
    fn advance(&mut self) -> Result<bool, ClientFailure> {
        match self.step {
            Step::Over | Step::OwnResults | Step::Finishing => Ok(false),
            Step::TheirResults => {
                let Some(message) = self.inbox.message("results", self.results_max())? else {
                    return Ok(false);
                };
                let read = if self.wants_output { Results::from_json } else { Results::from_json_plain };
                self.theirs = Some(Box::new(read(&message)?));
                self.step = Step::Display;
                Ok(true)
            }
            Step::Refusal => {
                let Some(bytes) = self.inbox.take::<8>() else { return Ok(false) };
                let both = u64::from_be_bytes(bytes);
                // Two integers of 32 bits, in two's complement.
                Err(ClientFailure::Refused { number: (both >> 32) as i32, errno: both as i32 })
            }
            _ => {
                let Some([byte]) = self.inbox.take::<1>() else { return Ok(false) };
                let wrong = Violation::State { byte: byte as i8, during: self.step.words() };
                self.state(State::of(byte).ok_or_else(|| wrong.clone())?, wrong)?;
                Ok(true)
            }
        }
    }

    fn state(&mut self, state: State, wrong: Violation) -> Result<(), ClientFailure> {
        let (next, event) = match (self.step, state) {
            (_, State::AccessDenied) => return Err(ClientFailure::Busy),
            (_, State::ServerTerminate) => return Err(ClientFailure::ServerStopped),
            (_, State::ServerError) => (Step::Refusal, None),
            (Step::Parameters, State::ParamExchange) => {
                self.output.extend(framed(&self.parameters));
                (Step::CreateStreams, None)
            }
            (Step::CreateStreams, State::CreateStreams) => (Step::Streams, Some(ClientAction::OpenStreams)),
            (Step::Streams, State::TestStart) => (Step::Streams, Some(ClientAction::Start)),
            (Step::Streams, State::TestRunning) => (Step::Running, Some(ClientAction::Run)),
            // A server that has had enough of a test ends it by itself.
            (Step::Running | Step::Ending, State::ExchangeResults) => {
                (Step::OwnResults, Some(ClientAction::Results))
            }
            (Step::Display, State::DisplayResults) => {
                (Step::Finishing, self.theirs.take().map(ClientAction::Finished))
            }
            _ => return Err(wrong.into()),
        };
        self.step = next;
        self.events.extend(event);
        Ok(())
    }
}
