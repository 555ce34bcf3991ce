//! A time limit that turns a deadlock into a failure.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Runs a test that could hang. A hang is a failure; the thread is left behind.
pub(crate) fn within(limit: Duration, test: impl FnOnce() + Send + 'static) {
    let (done, finished) = channel();
    let runner = thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    match finished.recv_timeout(limit) {
        Err(RecvTimeoutError::Timeout) => panic!("not finished after {limit:?}: a deadlock"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            if let Err(panic) = runner.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}
