//! What holds a replica back, or fills it, though every state is good, in words.

use linerate_model::drbd::{DrbdAlarm, DrbdEvidence};

/// The alarm with its texts.
#[must_use]
pub fn written(alarm: DrbdAlarm) -> DrbdAlarm {
    let resource = &alarm.resource;
    let (sentence, advice) = match &alarm.evidence {
        Some(DrbdEvidence::Cause { host, title, mechanism, readings, remedy }) => {
            let readings: Vec<String> =
                readings.iter().map(|(key, value)| format!("{key} is {value}")).collect();
            let advice = remedy.as_ref().map(|(instruction, risk)| format!("{instruction}; risk: {risk}"));
            let sentence = format!("{resource} on {host}: {title}: {}. {mechanism}", readings.join(", "));
            (sentence, advice.unwrap_or_default())
        }
        Some(DrbdEvidence::Full { host, folder, space }) => (
            format!(
                "the filesystem of {resource} on {host} ({folder}) is full: {} of {} MiB are left to \
                 programs; the replica is well, and every write fails",
                space.free_bytes >> 20,
                space.size_bytes >> 20
            ),
            "remove files, or grow the devices of both sides, then the resource (`drbdadm resize`) and the \
             filesystem"
                .to_owned(),
        ),
        None => return alarm,
    };
    DrbdAlarm { sentence, advice, ..alarm }
}
