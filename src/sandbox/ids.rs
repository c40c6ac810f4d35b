//! Object ids that look like Stripe's: a prefix and 24 letters and digits, rising within a run.

use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Letters that tell one run from another, so that a ledger which outlives the sandbox never meets
/// the same id twice.
const RUN_LENGTH: usize = 14;
const COUNT_LENGTH: usize = 10;

/// Makes ids. They sort in the order in which they were made.
#[derive(Debug)]
pub(crate) struct Ids {
    run: String,
    next: AtomicU64,
}

impl Ids {
    pub(crate) fn new() -> Self {
        let run = base62(Uuid::new_v4().as_u128(), RUN_LENGTH);
        Self {
            run,
            next: AtomicU64::new(1),
        }
    }

    /// A new id, such as `ch_3…` for the prefix `ch_`.
    pub(crate) fn next(&self, prefix: &str) -> String {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        format!(
            "{prefix}{}{}",
            self.run,
            base62(u128::from(count), COUNT_LENGTH)
        )
    }
}

/// The lowest `length` digits of `number` in base 62.
fn base62(mut number: u128, length: usize) -> String {
    let mut digits = vec![b'0'; length];
    for digit in digits.iter_mut().rev() {
        let index = usize::try_from(number % 62).unwrap_or_default();
        *digit = ALPHABET[index];
        number /= 62;
    }
    digits.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_ordered_and_of_one_length() {
        let ids = Ids::new();
        let made: Vec<String> = (0..200).map(|_| ids.next("ch_")).collect();
        assert!(made.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(
            made.iter()
                .all(|id| id.len() == 27 && id.starts_with("ch_"))
        );
    }
}
