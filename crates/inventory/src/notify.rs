//! `[[notify]]`: where a watch delivers its alarms. A table in, a checked target out.

use std::path::PathBuf;

use ::toml::Spanned;
use linerate_model::notify::{NotifyTarget, NotifyVia, WebhookUrl};

use super::error::{Problem, problem};
use super::tables::RawNotify;
use super::value::hours;
use linerate_input::quoted;

/// Where every mail program puts it.
pub(super) const SENDMAIL: &str = "/usr/sbin/sendmail";

/// The checked target.
pub(super) fn target(raw: &Spanned<RawNotify>) -> Result<NotifyTarget, Problem> {
    let RawNotify { webhook, mail, sendmail, command, quiet } = raw.get_ref();
    let via = match (webhook, mail, command) {
        (Some(url), None, None) => {
            let parsed = WebhookUrl::parse(url.get_ref());
            NotifyVia::Webhook(parsed.map_err(|why| {
                let what = format!("webhook `{}` {why}", quoted(url.get_ref()));
                problem(url, what, "such as http://127.0.0.1:9093/api/v2/alerts")
            })?)
        }
        (None, Some(to), None) => NotifyVia::Mail {
            to: to.iter().map(address).collect::<Result<_, _>>()?,
            sendmail: sendmail.as_ref().map_or_else(|| Ok(PathBuf::from(SENDMAIL)), program)?,
        },
        (None, None, Some(command)) => {
            if command.get_ref().first().is_none_or(String::is_empty) {
                return Err(problem(command, "command is empty", "a program and its arguments"));
            }
            NotifyVia::Command(command.get_ref().clone())
        }
        _ => {
            let hint = "one of `webhook`, `mail` and `command` in each [[notify]]";
            return Err(problem(raw, "a notification needs one target", hint));
        }
    };
    if matches!(&via, NotifyVia::Mail { to, .. } if to.is_empty()) {
        return Err(problem(raw, "mail has no address", "at least one, such as ops@example.org"));
    }
    let quiet = quiet.as_ref().map(|text| hours("quiet", text)).transpose()?;
    Ok(NotifyTarget { via, quiet })
}

/// An address that sendmail takes for nothing else.
fn address(text: &Spanned<String>) -> Result<String, Problem> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.+@=".contains(c);
    let address = text.get_ref();
    if !address.is_empty() && !address.starts_with('-') && address.len() <= 254 && address.chars().all(fits) {
        return Ok(address.clone());
    }
    let what = format!("mail address `{}` is not allowed", quoted(address));
    Err(problem(text, what, "letters, digits and -_.+@=, not beginning with -"))
}

fn program(path: &Spanned<PathBuf>) -> Result<PathBuf, Problem> {
    if path.get_ref().is_absolute() {
        return Ok(path.get_ref().clone());
    }
    Err(problem(path, "sendmail is not an absolute path", format!("such as {SENDMAIL}")))
}
