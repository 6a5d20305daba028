//! Several futures at the same time on one thread, without a task of their own: when the whole is dropped (Ctrl-C), all are.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Waits for all; the results come in the order of the futures.
pub async fn all<'a, T>(futures: Vec<Pin<Box<dyn Future<Output = T> + 'a>>>) -> Vec<T> {
    let mut slots: Vec<(Option<T>, _)> = futures.into_iter().map(|f| (None, f)).collect();
    poll_fn(move |context| {
        for (result, future) in &mut slots {
            if result.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *result = Some(value);
            }
        }
        if slots.iter().all(|(result, _)| result.is_some()) {
            Poll::Ready(slots.iter_mut().filter_map(|(result, _)| result.take()).collect())
        } else {
            Poll::Pending
        }
    })
    .await
}
