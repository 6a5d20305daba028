//! The pair of ways that a transfer uses: how bytes are sent, how they are received.
//!
//! What comes in: what was asked for. What goes out: one way of each kind, or those that a calibration has to
//! compare.

use linerate_model::tuning::{Pin, Tuning};

use super::receive::method::ReceiveWay;
use super::send::method::SendWay;
use super::{receive, send};
use crate::job::LoadError;

/// A way of sending and a way of receiving.
#[derive(Clone, Copy)]
pub(super) struct Ways {
    pub(super) send: &'static dyn SendWay,
    pub(super) receive: &'static dyn ReceiveWay,
}

impl Ways {
    /// The ways of these names.
    pub(super) fn named(send: &str, receive: &str) -> Result<Self, LoadError> {
        let unknown = |what, value: &str| LoadError::Option {
            what,
            value: value.to_owned(),
            reason: "this program does not know it".to_owned(),
        };
        Ok(Self {
            send: *send::WAYS
                .iter()
                .find(|way| way.name() == send)
                .ok_or_else(|| unknown("way of sending", send))?,
            receive: *receive::WAYS
                .iter()
                .find(|way| way.name() == receive)
                .ok_or_else(|| unknown("way of receiving", receive))?,
        })
    }

    /// What was asked for, else the first of each list that fits.
    pub(super) fn asked_for(tuning: &Tuning) -> Result<Self, LoadError> {
        let first = |names: Vec<&'static str>| names.first().copied().unwrap_or_default();
        let receive = match &tuning.receive {
            Some(name) => name,
            None => first(
                receive::WAYS
                    .iter()
                    .filter(|way| way.verifies() == tuning.verify)
                    .map(|w| w.name())
                    .collect(),
            ),
        };
        let ways = Self::named(tuning.send.as_deref().unwrap_or(first(send::names())), receive)?;
        if tuning.verify && !ways.receive.verifies() {
            let reason = "it looks at no byte, and the test is to be verified".to_owned();
            return Err(LoadError::Option { what: "way of receiving", value: receive.to_owned(), reason });
        }
        if ways.receive.is_beside() && matches!(tuning.pin, Pin::Cpus(_)) {
            let reason =
                "it follows its packets from CPU to CPU\nhint: leave out --pin, or use --receive truncate";
            let (what, value) = ("way of receiving", receive.to_owned());
            return Err(LoadError::Option { what, value, reason: reason.to_owned() });
        }
        Ok(ways)
    }

    /// What a calibration compares: everything that nobody decided.
    pub(super) fn candidates(tuning: &Tuning) -> Result<Vec<Self>, LoadError> {
        let asked = Self::asked_for(tuning)?;
        let sends: Vec<&'static dyn SendWay> = match tuning.send {
            Some(_) => vec![asked.send],
            None => send::WAYS.iter().copied().filter(|way| way.is_candidate()).collect(),
        };
        let receives: Vec<&'static dyn ReceiveWay> = if tuning.receive.is_some() || tuning.verify {
            vec![asked.receive]
        } else {
            let beside = tuning.pin == Pin::Auto;
            receive::WAYS
                .iter()
                .copied()
                .filter(|way| way.is_candidate() && (beside || !way.is_beside()))
                .collect()
        };
        Ok(sends
            .iter()
            .flat_map(|&send| receives.iter().map(move |&receive| Self { send, receive }))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tuning: &Tuning) -> Vec<(&'static str, &'static str)> {
        Ways::candidates(tuning).unwrap().iter().map(|w| (w.send.name(), w.receive.name())).collect()
    }

    #[test]
    fn what_is_decided_is_not_compared() {
        let all = names(&Tuning::default());
        assert!(all.len() >= 4 && all.contains(&("write", "truncate-beside")), "{all:?}");
        let free = names(&Tuning { pin: Pin::None, ..Tuning::default() });
        assert!(free.iter().all(|(_, receive)| *receive == "truncate"));
        let verified = names(&Tuning { verify: true, send: Some("write".into()), ..Tuning::default() });
        assert_eq!(verified, [("write", "verify")]);
        let both = Tuning { verify: true, receive: Some("truncate".into()), ..Tuning::default() };
        let pinned =
            Tuning { pin: Pin::Cpus(vec![0]), receive: Some("truncate-beside".into()), ..Tuning::default() };
        assert!(Ways::asked_for(&pinned).is_err());
        assert!(Ways::asked_for(&both).is_err() && Ways::named("write", "owl").is_err());
    }
}
