//! Passwords of requests against the bcrypt hashes of the users.
//!
//! A name that no user has costs the same check as one that a user has, so that the time of a refusal reveals
//! no names. A password that was right once is not checked again: a page asks for several files.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use super::web_config::PASSWORD_MAX;

/// Checks at a time: each takes a core for a tenth of a second.
const CHECKS_MAX: usize = 2;

/// Whether a password has this hash.
type Check = fn(&str, &str) -> bool;

/// The users of a file.
pub(super) struct Users {
    /// Names and hashes; at least one.
    all: Vec<(String, String)>,
    /// Digests of what was right, at most one for each user.
    right: Mutex<HashSet<[u8; 32]>>,
    free: Arc<Semaphore>,
    /// Chooses the hash that a name without a user is checked against: the same each time.
    chooser: RandomState,
    check: Check,
}

impl Users {
    /// `None` where there is none.
    pub(super) fn new(all: Vec<(String, String)>) -> Option<Self> {
        Self::with(all, |password, hash| bcrypt::verify(password, hash).unwrap_or(false))
    }

    fn with(all: Vec<(String, String)>, check: Check) -> Option<Self> {
        let free = Arc::new(Semaphore::new(CHECKS_MAX));
        let right = Mutex::default();
        (!all.is_empty()).then(|| Self { all, right, free, chooser: RandomState::new(), check })
    }

    /// Whether the value of an `Authorization` header is of a user.
    pub(super) async fn admits(&self, header: Option<&str>) -> bool {
        let Some((name, password)) = header.and_then(name_and_password) else { return false };
        let found = self.all.iter().find(|(of, _)| *of == name);
        let other = (self.chooser.hash_one(&name) % self.all.len() as u64) as usize;
        let hash = found.unwrap_or(&self.all[other]).1.clone();
        let digest: [u8; 32] = Sha256::digest(format!("{name}\0{hash}\0{password}")).into();
        let right = || self.right.lock().unwrap_or_else(PoisonError::into_inner);
        if right().contains(&digest) {
            return true;
        }
        let Ok(permit) = Arc::clone(&self.free).acquire_owned().await else { return false };
        let check = self.check;
        let checked = tokio::task::spawn_blocking(move || {
            // A client that leaves ends no check: it counts until it is over.
            let _held = permit;
            check(&password, &hash)
        })
        .await;
        // The hash of another user admits no name without one.
        let is_right = checked.unwrap_or(false) && found.is_some();
        if is_right {
            right().insert(digest);
        }
        is_right
    }
}

/// Of `Basic <base64>`. Longer passwords than bcrypt reads are none.
fn name_and_password(header: &str) -> Option<(String, String)> {
    let (scheme, text) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(text.trim()).ok()?).ok()?;
    let (name, password) = text.split_once(':')?;
    (password.len() <= PASSWORD_MAX).then(|| (name.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    fn header(text: &str) -> String {
        format!("Basic {}", STANDARD.encode(text))
    }

    #[tokio::test]
    async fn a_check_counts_until_it_is_over_also_when_the_client_has_left() {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        static MAY_END: AtomicBool = AtomicBool::new(false);
        let check: Check = |_, _| {
            STARTED.fetch_add(1, Ordering::SeqCst);
            while !MAY_END.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            false
        };
        let users = Arc::new(Users::with(vec![("alice".to_owned(), "hash".to_owned())], check).unwrap());
        let clients = [1, 2].map(|number| {
            let (users, header) = (Arc::clone(&users), header(&format!("alice:{number}")));
            tokio::spawn(async move { users.admits(Some(&header)).await })
        });
        while STARTED.load(Ordering::SeqCst) < CHECKS_MAX {
            tokio::task::yield_now().await;
        }
        for client in clients {
            client.abort();
            assert!(client.await.unwrap_err().is_cancelled());
        }
        assert_eq!(users.free.available_permits(), 0);
        MAY_END.store(true, Ordering::SeqCst);
        linerate_testkit::wait_until("the checks end", || users.free.available_permits() == CHECKS_MAX);
    }

    #[tokio::test]
    async fn a_name_without_a_user_costs_the_same_check_and_a_right_password_one() {
        static CHECKS: AtomicUsize = AtomicUsize::new(0);
        // A password is right where it is the hash: also for a name without a user.
        let check: Check = |password, hash| {
            CHECKS.fetch_add(1, Ordering::Relaxed);
            password == hash
        };
        let all = vec![("alice".to_owned(), "secret".to_owned())];
        let users = Users::with(all, check).unwrap();
        let mut expected = 0;
        for (text, is_right, checks) in [
            ("alice:wrong", false, 1),
            ("alice:wrong", false, 1),
            ("mallory:wrong", false, 1),
            ("mallory:secret", false, 1),
            ("alice:secret", true, 1),
            ("alice:secret", true, 0),
            ("mallory:secret", false, 1),
            ("alice:", false, 1),
        ] {
            assert_eq!(users.admits(Some(&header(text))).await, is_right, "{text}");
            expected += checks;
            assert_eq!(CHECKS.load(Ordering::Relaxed), expected, "{text}");
        }
        let long = format!("alice:{}", "x".repeat(PASSWORD_MAX + 1));
        for wrong in ["", "Basic", "Basic !!!", "Bearer YWxpY2U6c2VjcmV0", &header("alice"), &header(&long)] {
            assert!(!users.admits(Some(wrong)).await, "{wrong}");
        }
        assert!(!users.admits(None).await);
        assert!(Users::with(Vec::new(), check).is_none());
    }

    #[tokio::test]
    async fn hashes_of_htpasswd_are_read() {
        // `htpasswd -nbB -C 4 alice secret`, and the same as `$2b$`.
        let hash = bcrypt::hash("secret", 4).unwrap();
        for hash in [hash.clone(), hash.replacen("$2b$", "$2y$", 1)] {
            let users = Users::new(vec![("alice".to_owned(), hash)]).unwrap();
            assert!(users.admits(Some(&header("alice:secret"))).await);
            assert!(!users.admits(Some(&header("alice:Secret"))).await);
        }
    }
}
