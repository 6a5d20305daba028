//! The server's side of a control connection, as a pure state machine.
//!
//! What comes in: bytes of the client in pieces of any size, and what our side has done. What goes out: bytes
//! to send, and events that name the next step. No I/O, no clock: the driver sets the deadlines. It never
//! keeps more of a message than its limit.

use std::collections::VecDeque;

use super::parameters::{Parameters, Unfit};
use super::protocol::{
    COOKIE_BYTES, Cookie, Inbox, PARAMETERS_BYTES_MAX, RESULTS_BYTES_MAX, State, Violation, framed, refusal,
};
use super::results::Results;

/// What the server's driver has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerAction {
    /// The client's specs, and what of them is not taken. Answer with [`Iperf3Server::accept`] when
    /// ready for its streams, or [`Iperf3Server::refuse`].
    Parameters {
        /// Shown by every stream of this test.
        cookie: Box<Cookie>,
        /// What is wanted.
        parameters: Box<Parameters>,
        /// Why it cannot be had.
        unfit: Option<Unfit>,
    },
    /// The client has had enough: let the streams run dry, then call [`Iperf3Server::stopped`].
    End,
    /// The client's results are here: hand over ours with [`Iperf3Server::results`].
    Results(Box<Results>),
    /// The client is done.
    Done,
    /// It is over before its end. Nothing follows.
    Failed(ServerFailure),
}

/// Why a test ended early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerFailure {
    /// The client was stopped.
    #[error("the client was stopped")]
    ClientStopped,
    /// The server was stopped.
    #[error("the server was stopped")]
    ServerStopped,
    /// The peer broke the protocol or went away.
    #[error(transparent)]
    Violation(#[from] Violation),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Cookie,
    Parameters,
    /// Ours to accept or refuse.
    Judging,
    /// Until all streams are there.
    Streams,
    Running,
    /// Ours to let the streams run dry.
    Draining,
    TheirResults,
    OwnResults,
    Display,
    Over,
}

impl Step {
    fn words(self) -> &'static str {
        match self {
            Self::Cookie => "the cookie",
            Self::Parameters => "the parameters",
            Self::Judging | Self::Streams => "the streams",
            Self::Running => "the test",
            Self::Draining | Self::TheirResults | Self::OwnResults => "the client's results",
            Self::Display => "the end of the test",
            Self::Over => "nothing",
        }
    }
}

/// The server of one test.
#[derive(Debug)]
pub struct Iperf3Server {
    step: Step,
    cookie: Cookie,
    inbox: Inbox,
    output: Vec<u8>,
    events: VecDeque<ServerAction>,
}

impl Default for Iperf3Server {
    fn default() -> Self {
        Self {
            step: Step::Cookie,
            cookie: [0; COOKIE_BYTES],
            inbox: Inbox::default(),
            output: Vec::new(),
            events: VecDeque::new(),
        }
    }
}

impl Iperf3Server {
    /// Bytes to send.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// What is to be done next.
    pub fn poll_event(&mut self) -> Option<ServerAction> {
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

    /// Bytes of the client.
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
        let limit = match self.step {
            Step::TheirResults => RESULTS_BYTES_MAX,
            _ => PARAMETERS_BYTES_MAX,
        };
        // A read brings at most 64 KiB at once; a peer that sends more out of turn is no iperf3.
        if waiting > limit + (64 << 10) {
            self.fail(Violation::Flood { bytes: waiting }.into());
        }
    }

    /// The client closed its end.
    pub fn closed(&mut self) {
        match self.step {
            Step::Over => {}
            // Some clients close instead of sending that they are done.
            Step::Display => {
                self.step = Step::Over;
                self.events.push_back(ServerAction::Done);
            }
            step => self.fail(Violation::Closed { during: step.words() }.into()),
        }
    }

    /// The parameters are taken and we are ready for the streams.
    pub fn accept(&mut self) {
        if self.step == Step::Judging {
            self.output.push(State::CreateStreams.byte());
            self.step = Step::Streams;
            self.received(&[]);
        }
    }

    /// The test is refused or given up, with iperf3's error number and the system's. It is over.
    pub fn refuse(&mut self, number: i32, errno: i32) {
        if !self.is_over() {
            self.output.extend(refusal(number, errno));
            self.step = Step::Over;
        }
    }

    /// All streams are there: both ends may start.
    pub fn run(&mut self) {
        if self.step == Step::Streams {
            self.output.extend([State::TestStart.byte(), State::TestRunning.byte()]);
            self.step = Step::Running;
            self.received(&[]);
        }
    }

    /// Our streams have stopped.
    pub fn stopped(&mut self) {
        if self.step == Step::Draining {
            self.output.push(State::ExchangeResults.byte());
            self.step = Step::TheirResults;
            self.received(&[]);
        }
    }

    /// Our results.
    pub fn results(&mut self, results: &Results) {
        if self.step == Step::OwnResults {
            self.output.extend(framed(&results.to_json()));
            self.output.push(State::DisplayResults.byte());
            self.step = Step::Display;
            self.received(&[]);
        }
    }

    /// We are stopped from outside.
    pub fn stop(&mut self) {
        if !self.is_over() {
            self.output.push(State::ServerTerminate.byte());
            self.fail(ServerFailure::ServerStopped);
        }
    }

    fn fail(&mut self, failure: ServerFailure) {
        self.step = Step::Over;
        self.events.push_back(ServerAction::Failed(failure));
    }

    /// Takes one thing out of the inbox; `false` when there is none, or it is our turn.
    fn advance(&mut self) -> Result<bool, ServerFailure> {
        match self.step {
            Step::Over | Step::Judging | Step::Draining | Step::OwnResults => Ok(false),
            Step::Cookie => {
                let Some(cookie) = self.inbox.take::<COOKIE_BYTES>() else { return Ok(false) };
                self.cookie = cookie;
                self.output.push(State::ParamExchange.byte());
                self.step = Step::Parameters;
                Ok(true)
            }
            Step::Parameters => {
                let Some(message) = self.inbox.message("parameters", PARAMETERS_BYTES_MAX)? else {
                    return Ok(false);
                };
                let (parameters, unfit) = Parameters::from_json(&message)?;
                let (cookie, parameters) = (Box::new(self.cookie), Box::new(parameters));
                self.events.push_back(ServerAction::Parameters { cookie, parameters, unfit });
                self.step = Step::Judging;
                Ok(true)
            }
            Step::TheirResults => {
                let Some(message) = self.inbox.message("results", RESULTS_BYTES_MAX)? else {
                    return Ok(false);
                };
                self.events.push_back(ServerAction::Results(Box::new(Results::from_json_plain(&message)?)));
                self.step = Step::OwnResults;
                Ok(true)
            }
            Step::Streams | Step::Running | Step::Display => {
                let Some([byte]) = self.inbox.take::<1>() else { return Ok(false) };
                match (self.step, State::of(byte)) {
                    (_, Some(State::ClientTerminate)) => return Err(ServerFailure::ClientStopped),
                    (Step::Running, Some(State::TestEnd)) => {
                        self.step = Step::Draining;
                        self.events.push_back(ServerAction::End);
                    }
                    (Step::Display, Some(State::Done)) => {
                        self.step = Step::Over;
                        self.events.push_back(ServerAction::Done);
                    }
                    _ => {
                        let during = self.step.words();
                        return Err(Violation::State { byte: byte as i8, during }.into());
                    }
                }
                Ok(true)
            }
        }
    }
}
