//! A fake node that builds: it keeps a journal in its memory, and refuses to make filesystems when it is of
//! that kind. Runs nothing.

use linerate_model::step::{Clear, Step};
use linerate_wire::message::{BuildEntry, BuildRequest, Event, Request};
use linerate_wire::session::NodeSession;

/// What it has built.
#[derive(Default)]
pub(super) struct Builder {
    builds: Vec<BuildEntry>,
}

impl Builder {
    /// Answers a request about builds; `false` leaves it to others.
    pub(super) fn answer(
        &mut self,
        session: &mut NodeSession,
        now: u64,
        id: u64,
        body: &Request,
        behaviour: &str,
    ) -> bool {
        let Request::Build(body) = body else { return false };
        match body {
            BuildRequest::Step { build, step } => {
                let at = self.builds.iter().position(|entry| entry.build == *build).unwrap_or_else(|| {
                    let build = build.clone();
                    self.builds.push(BuildEntry {
                        build,
                        created_ms: 1,
                        steps: vec![],
                        was_there: vec![],
                        whole: true,
                    });
                    self.builds.len() - 1
                });
                self.builds[at].steps.push(step.clone());
                if behaviour == "makes-no-filesystem" && matches!(step, Step::Filesystem(_)) {
                    let (error, hint) = ("mkfs.xfs ended with 1".to_owned(), String::new());
                    session.respond(now, id, Event::Failed { error, hint, undo_failed: false });
                    return true;
                }
                session.respond(now, id, Event::Seen(Box::default()));
            }
            BuildRequest::Unbuild { build, .. } => {
                let undone = self.builds.iter().filter(|entry| entry.build == *build);
                let back = |step: &Step| {
                    let operation = step.operation();
                    let commands = operation.undo().into_iter().map(|argv| argv.join(" "));
                    commands.chain(operation.clear().iter().map(Clear::says)).collect::<Vec<_>>()
                };
                let lines = undone.flat_map(|entry| entry.steps.iter().rev()).flat_map(back).collect();
                self.builds.retain(|entry| entry.build != *build);
                session.respond(now, id, Event::Unbuilt { lines });
            }
            BuildRequest::Built { build } => self.builds.retain(|entry| entry.build != *build),
            BuildRequest::Builds => session.respond(now, id, Event::Builds(self.builds.clone())),
            BuildRequest::Look(_) => return false,
        }
        session.respond(now, id, Event::Done);
        true
    }
}
