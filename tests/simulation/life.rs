//! A process that can be frozen and killed: everything it does runs through its [`Life`].

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use super::world::{World, lock};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Running,
    Frozen,
    Dead,
}

/// One life of one process. While it is frozen none of its futures is asked to go on; once it is dead
/// they are dropped, wherever they were.
pub(super) struct Life {
    world: Arc<World>,
    inner: Mutex<Inner>,
}

struct Inner {
    state: State,
    next: u64,
    wakers: BTreeMap<u64, Waker>,
}

impl Life {
    pub(super) fn new(world: Arc<World>) -> Arc<Self> {
        let inner = Mutex::new(Inner {
            state: State::Running,
            next: 0,
            wakers: BTreeMap::new(),
        });
        Arc::new(Self { world, inner })
    }

    pub(super) fn freeze(&self) {
        let mut inner = lock(&self.inner);
        if inner.state == State::Running {
            inner.state = State::Frozen;
        }
    }

    pub(super) fn thaw(&self) {
        self.become_(State::Frozen, State::Running);
    }

    pub(super) fn kill(&self) {
        self.become_(State::Running, State::Dead);
        self.become_(State::Frozen, State::Dead);
    }

    pub(super) fn is_frozen(&self) -> bool {
        lock(&self.inner).state == State::Frozen
    }

    pub(super) fn is_dead(&self) -> bool {
        lock(&self.inner).state == State::Dead
    }

    fn become_(&self, from: State, to: State) {
        let mut inner = lock(&self.inner);
        if inner.state == from {
            inner.state = to;
            let wakers: Vec<Waker> = inner.wakers.values().cloned().collect();
            drop(inner);
            wakers.iter().for_each(Waker::wake_by_ref);
        }
    }

    /// Makes a future part of this life; it answers `None` where the process died first.
    pub(super) fn run<F: Future>(self: &Arc<Self>, future: F) -> Bound<F> {
        let mut inner = lock(&self.inner);
        inner.next += 1;
        Bound {
            number: inner.next,
            life: Arc::clone(self),
            future: Some(Box::pin(future)),
        }
    }
}

/// A future of a process.
pub(super) struct Bound<F> {
    number: u64,
    life: Arc<Life>,
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for Bound<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let state = {
            let mut inner = lock(&self.life.inner);
            inner.wakers.insert(self.number, cx.waker().clone());
            inner.state
        };
        match state {
            State::Frozen => return Poll::Pending,
            State::Dead => {
                self.future = None;
                return Poll::Ready(None);
            }
            State::Running => {}
        }
        let Some(future) = &mut self.future else {
            return Poll::Ready(None);
        };
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        let polled = polled.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("without a message");
            self.life.world.fail(&format!("a task panicked: {text}"));
            Poll::Pending
        });
        if self.life.is_dead() {
            self.future = None;
            return Poll::Ready(None);
        }
        polled.map(Some)
    }
}

impl<F> Drop for Bound<F> {
    fn drop(&mut self) {
        lock(&self.life.inner).wakers.remove(&self.number);
    }
}
