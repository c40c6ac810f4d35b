//! Mistakes that a test plants, to see that the simulation finds them. Compiled into tests alone; every
//! one stands at the very line that it spoils.

use std::cell::Cell;

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mistake {
    /// A 401 is taken as the outcome of earlier sends too.
    ReleaseOn401AfterAnUnprovenSend,
    /// The last moment to send is not looked at when the body leaves.
    ForwardWithoutCheckingForwardBy,
    /// An outcome that meets a row that is not in flight any more is dropped.
    SettleDroppedOnAlready,
    /// A row that is written off gives its slot back.
    SlotFreedByAWriteOff,
    /// Caps are read before their lock is held.
    CapReadOutsideTheLock,
}

thread_local! {
    static PLANTED: Cell<Option<Mistake>> = const { Cell::new(None) };
}

/// True where this thread runs with the mistake.
pub(crate) fn is_planted(mistake: Mistake) -> bool {
    PLANTED.get() == Some(mistake)
}

/// Plants a mistake in this thread, or takes it away.
pub(crate) fn plant(mistake: Option<Mistake>) {
    PLANTED.set(mistake);
}
