//! Random moments that differ between runs, and are found again from a printed seed.

/// xorshift64*.
pub(crate) struct Random(u64);

impl Random {
    #[expect(clippy::print_stdout, reason = "shown where the test fails")]
    pub(crate) fn seeded() -> Self {
        let (fresh, _) = uuid::Uuid::new_v4().as_u64_pair();
        let seed = setting("SPENDCAP_TEST_SEED").unwrap_or(fresh) | 1;
        println!("SPENDCAP_TEST_SEED={seed}");
        Self(seed)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % end
    }
}

/// How many rounds a test of random moments runs: its own number, or `SPENDCAP_TEST_ROUNDS`.
pub(crate) fn rounds(usual: u64) -> u64 {
    setting("SPENDCAP_TEST_ROUNDS").unwrap_or(usual)
}

fn setting(name: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "the tests' own setting")]
    let set = std::env::var(name).ok();
    set.map(|text| text.parse().unwrap())
}
