//! What the auditor is told, in plain numbers and texts: what the ledger stored, and what Stripe did.

/// A reservation as it is stored.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: i64,
    pub(super) vault_key: String,
    /// Made for a capture of a charge that no reservation knew then.
    pub(super) adopted: bool,
    /// What a create bills: whom, where, how much.
    pub(super) intent: Option<String>,
    pub(super) reserved: i64,
    pub(super) settled: i64,
    pub(super) state: &'static str,
    pub(super) object_id: Option<String>,
    pub(super) upstream_key: String,
    /// How often it was sent.
    pub(super) sends: u32,
}

/// A vault key as it is stored; every run has one currency.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) id: String,
    pub(super) status: &'static str,
    pub(super) max_amount: i64,
    pub(super) reserved: i64,
    pub(super) settled: i64,
}

/// What one transaction stored.
#[derive(Default, Debug)]
pub(super) struct Stored {
    /// In the run's true time.
    pub(super) at_ms: i64,
    pub(super) keys: Vec<Key>,
    pub(super) rows: Vec<Row>,
    pub(super) flags: Vec<(i64, &'static str)>,
    /// Charges that are said to have gone around.
    pub(super) bypasses: Vec<String>,
}

/// A request that left a proxy and may still be carried out.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    /// In the run's true time.
    pub(super) at_ms: i64,
    pub(super) number: u64,
    pub(super) key: String,
    pub(super) amount: i64,
    /// The charge to capture; `None` for a create.
    pub(super) charge: Option<String>,
}

/// A charge as Stripe has it.
#[derive(Clone, Debug)]
pub(super) struct Charge {
    pub(super) id: String,
    /// In the run's true time.
    pub(super) made_at_ms: i64,
    /// The request that made it; `None` for one made past the proxy.
    pub(super) made_by: Option<u64>,
    pub(super) slot: String,
    pub(super) amount: i64,
    pub(super) captured: Option<i64>,
    pub(super) voided: bool,
}

impl Charge {
    /// What it took, or may take by itself; one made past the proxy counts once it is captured.
    pub(super) fn exposed(&self) -> Option<i64> {
        match (self.captured, self.made_by) {
            (Some(captured), _) => Some(captured),
            (None, Some(_)) if !self.voided => Some(self.amount),
            _ => None,
        }
    }
}

impl std::fmt::Display for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for Key {
            id,
            status,
            max_amount,
            reserved,
            settled,
        } in &self.keys
        {
            write!(f, " {id} {status} {reserved}+{settled}/{max_amount};")?;
        }
        for row in &self.rows {
            let Row {
                id,
                state,
                reserved,
                settled,
                upstream_key,
                ..
            } = row;
            let object = row.object_id.as_deref().unwrap_or("-");
            write!(
                f,
                " row {id} {state} {reserved}+{settled} {object} under {upstream_key};"
            )?;
        }
        self.flags
            .iter()
            .try_for_each(|(row, kind)| write!(f, " {kind} on {row};"))
    }
}
