//! Stage 6: what is one finding. Wrong settings join the losses that they explain, a path joins its host,
//! what
//! follows from another finding becomes a note, and what is wrong on most hosts stands for all of them.

mod adopt;
mod gathered;
mod settings;

pub(crate) use adopt::{adopt, consequences, join_same};
pub(crate) use gathered::{Wrong, hosts, on_others};
pub(crate) use settings::wrong;
