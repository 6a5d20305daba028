//! The pair of methods that a transfer uses: one to send, one to receive.
//!
//! What comes in: what was asked for. What goes out: one method of each kind, or those that a calibration has
//! to compare.

use linerate_model::tuning::{Pin, Tuning};

use super::receive::method::ReceiveMethod;
use super::send::method::SendMethod;
use super::{receive, send};
use crate::job::LoadError;

/// A send method and a receive method.
#[derive(Clone, Copy)]
pub(super) struct Methods {
    pub(super) send: &'static dyn SendMethod,
    pub(super) receive: &'static dyn ReceiveMethod,
}

impl Methods {
    /// The methods of these names.
    pub(super) fn named(send: &str, receive: &str) -> Result<Self, LoadError> {
        let unknown = |what, value: &str| LoadError::Option {
            what,
            value: value.to_owned(),
            reason: "this program does not know it".to_owned(),
        };
        Ok(Self {
            send: *send::METHODS
                .iter()
                .find(|method| method.name() == send)
                .ok_or_else(|| unknown("send method", send))?,
            receive: *receive::METHODS
                .iter()
                .find(|method| method.name() == receive)
                .ok_or_else(|| unknown("receive method", receive))?,
        })
    }

    /// What was asked for, else the first of each list that fits.
    pub(super) fn asked_for(tuning: &Tuning) -> Result<Self, LoadError> {
        let first = |names: Vec<&'static str>| names.first().copied().unwrap_or_default();
        let receive = match &tuning.receive {
            Some(name) => name,
            None => first(
                receive::METHODS
                    .iter()
                    .filter(|method| method.verifies() == tuning.verify)
                    .map(|w| w.name())
                    .collect(),
            ),
        };
        let methods = Self::named(tuning.send.as_deref().unwrap_or(first(send::names())), receive)?;
        if tuning.verify && !methods.receive.verifies() {
            let reason = "it reads no content, and the test verifies it".to_owned();
            return Err(LoadError::Option { what: "receive method", value: receive.to_owned(), reason });
        }
        if methods.receive.is_beside() && matches!(tuning.pin, Pin::Cpus(_)) {
            let reason =
                "it follows its packets from CPU to CPU\nhint: leave out --pin, or use --receive truncate";
            let (what, value) = ("receive method", receive.to_owned());
            return Err(LoadError::Option { what, value, reason: reason.to_owned() });
        }
        Ok(methods)
    }

    /// What a calibration compares: everything that the tuning leaves open.
    pub(super) fn candidates(tuning: &Tuning) -> Result<Vec<Self>, LoadError> {
        let asked = Self::asked_for(tuning)?;
        let sends: Vec<&'static dyn SendMethod> = match tuning.send {
            Some(_) => vec![asked.send],
            None => send::METHODS.iter().copied().filter(|method| method.is_candidate()).collect(),
        };
        let receives: Vec<&'static dyn ReceiveMethod> = if tuning.receive.is_some() || tuning.verify {
            vec![asked.receive]
        } else {
            let beside = tuning.pin == Pin::Auto;
            receive::METHODS
                .iter()
                .copied()
                .filter(|method| method.is_candidate() && (beside || !method.is_beside()))
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
        Methods::candidates(tuning).unwrap().iter().map(|w| (w.send.name(), w.receive.name())).collect()
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
        assert!(Methods::asked_for(&pinned).is_err());
        assert!(Methods::asked_for(&both).is_err() && Methods::named("write", "owl").is_err());
    }
}
