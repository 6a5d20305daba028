//! Several futures at the same time on one thread, without a task of their own: when the whole is dropped
//! (Ctrl-C), all are.
//!
//! What comes in: futures. What goes out: their results. Only a future that was woken is polled again, so
//! thousands of them cost no more than each of them alone.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Numbers of futures that were woken since they were polled last, and whom to tell.
#[derive(Default)]
struct Woken {
    numbers: Mutex<Vec<usize>>,
    whole: Mutex<Option<Waker>>,
}

struct OneWaker {
    number: usize,
    waits: AtomicBool,
    woken: Arc<Woken>,
}

impl Wake for OneWaker {
    fn wake(self: Arc<Self>) {
        // Once in the list is enough.
        if !self.waits.swap(true, Ordering::AcqRel) {
            self.woken.numbers.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
        }
        let whole = self.woken.whole.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(whole) = whole {
            whole.wake();
        }
    }
}

struct Slot<'a, T> {
    future: Option<Pin<Box<dyn Future<Output = T> + 'a>>>,
    result: Option<T>,
    waker: Arc<OneWaker>,
}

/// Waits for all; the results come in the order of the futures.
pub async fn all<'a, T>(futures: Vec<Pin<Box<dyn Future<Output = T> + 'a>>>) -> Vec<T> {
    let woken = Arc::new(Woken::default());
    *woken.numbers.lock().unwrap_or_else(PoisonError::into_inner) = (0..futures.len()).collect();
    let mut left = futures.len();
    let mut slots: Vec<Slot<'a, T>> = futures
        .into_iter()
        .enumerate()
        .map(|(number, future)| Slot {
            future: Some(future),
            result: None,
            waker: Arc::new(OneWaker { number, waits: AtomicBool::new(true), woken: Arc::clone(&woken) }),
        })
        .collect();
    let whole = poll_fn(move |context| {
        *woken.whole.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.waker().clone());
        let numbers = std::mem::take(&mut *woken.numbers.lock().unwrap_or_else(PoisonError::into_inner));
        for number in numbers {
            let slot = &mut slots[number];
            slot.waker.waits.store(false, Ordering::Release);
            let Some(future) = &mut slot.future else { continue };
            let waker = Waker::from(Arc::clone(&slot.waker));
            if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                slot.result = Some(value);
                slot.future = None;
                left -= 1;
            }
        }
        if left == 0 {
            Poll::Ready(slots.iter_mut().filter_map(|slot| slot.result.take()).collect())
        } else {
            Poll::Pending
        }
    });
    // The runtime's budget is meant for one future; here it would send thousands of them round and round.
    tokio::task::unconstrained(whole).await
}
