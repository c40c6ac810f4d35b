//! Where held requests wait, and where tests wait for them: no sleeping on either side.

use tokio::sync::watch;

/// Counts the requests that are held and lets them all go at once.
#[derive(Debug)]
pub(crate) struct Gate(watch::Sender<State>);

#[derive(Debug, Clone, Copy, Default)]
struct State {
    held: usize,
    /// Raised by every release.
    releases: u64,
}

impl Default for Gate {
    fn default() -> Self {
        Self(watch::Sender::new(State::default()))
    }
}

impl Gate {
    /// Waits for the next release.
    pub(crate) async fn hold(&self) {
        let mut receiver = self.0.subscribe();
        let mut releases = 0;
        self.0.send_modify(|state| {
            state.held += 1;
            releases = state.releases;
        });
        let _counted = Held(&self.0);
        // An error would mean that the sender is gone; it is borrowed here.
        let _state = receiver
            .wait_for(|state| state.releases > releases)
            .await
            .map(|state| *state);
    }

    /// Lets every held request go on.
    pub(crate) fn release(&self) {
        self.0.send_modify(|state| state.releases += 1);
    }

    /// How many requests are held now.
    pub(crate) fn held(&self) -> usize {
        self.0.borrow().held
    }

    /// Waits until at least this many requests are held.
    pub(crate) async fn wait_until_held(&self, count: usize) {
        let mut receiver = self.0.subscribe();
        let _state = receiver
            .wait_for(|state| state.held >= count)
            .await
            .map(|state| *state);
    }
}

/// Takes a request off the count however its wait ends.
struct Held<'a>(&'a watch::Sender<State>);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0
            .send_modify(|state| state.held = state.held.saturating_sub(1));
    }
}
