//! Whether threads share resources (`kcmp(2)`).
//!
//! In: thread numbers of the caller's PID namespace. Out: whether they share a table. It decides nothing.

use std::io;

/// `KCMP_FILES` of linux/kcmp.h.
const KCMP_FILES: libc::c_int = 2;

/// Whether two threads have the same table of open files. Fails where one of them has ended, where the caller
/// may not look into them, and on kernels without `CONFIG_KCMP`.
pub fn share_files(one: u32, other: u32) -> io::Result<bool> {
    let number = |task: u32| libc::pid_t::try_from(task).map_err(io::Error::other);
    let (one, other) = (number(one)?, number(other)?);
    // SAFETY: the arguments are numbers.
    match unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_FILES, 0_u64, 0_u64) } {
        -1 => Err(io::Error::last_os_error()),
        order => Ok(order == 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_process_share_their_files_and_processes_do_not() {
        let own = std::process::id();
        match share_files(own, own) {
            Ok(shared) => assert!(shared),
            Err(error) => {
                println!("SKIPPED threads_of_a_process_share_their_files_and_processes_do_not: {error}");
                return;
            }
        }
        // SAFETY: a plain call without arguments.
        let thread = std::thread::spawn(|| share_files(std::process::id(), unsafe { libc::gettid() } as u32));
        assert!(thread.join().unwrap().unwrap());
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let shared = share_files(own, child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!shared.unwrap());
        assert!(share_files(own, u32::MAX).is_err());
    }
}
