//! What a decision observes, and which reservation it is recorded on.

use super::{Look, Observation};
use crate::domain::flag::FlagKind;
use crate::domain::id::ReservationId;

/// The flags of one decision; after a wait only those on a new reservation are still to be counted.
pub(super) struct Observed {
    flags: Vec<Observation>,
    look: Look,
}

impl Observed {
    pub(super) fn at(look: Look) -> Self {
        Self {
            flags: Vec::new(),
            look,
        }
    }

    pub(super) fn into_flags(self) -> Vec<Observation> {
        self.flags
    }

    pub(super) fn on(&mut self, reservation: ReservationId, kind: FlagKind) {
        if self.look == Look::First {
            self.flags.push(Observation {
                reservation: Some(reservation),
                kind,
            });
        }
    }

    /// No new reservation comes of this request: that it was a duplicate is recorded where it met the
    /// first one.
    pub(super) fn move_to(&mut self, met: ReservationId) {
        let duplicate = FlagKind::DuplicateCustomerPeriod;
        for flag in &mut self.flags {
            if flag.reservation.is_none() && flag.kind == duplicate && self.look == Look::First {
                flag.reservation = Some(met);
            }
        }
    }

    pub(super) fn on_new(&mut self, kind: FlagKind) {
        self.flags.push(Observation {
            reservation: None,
            kind,
        });
    }
}
