-- The ledger. Times are milliseconds since 1970 on the store's clock, amounts are minor units.
-- States, kinds and operations are stored by name, so that an operator can read them.

-- Facts about this ledger: min_binary (the oldest version that may run on this schema), and, once
-- pinned, account and mode.
CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta (name, value) VALUES ('min_binary', '0.1.0');

-- permissions, max_charge, accounts and metadata are JSON.
CREATE TABLE vault_keys (
    id                  TEXT    NOT NULL PRIMARY KEY,
    secret_hint         TEXT    NOT NULL,
    billing_period      TEXT    NOT NULL,
    namespace           TEXT    NOT NULL,
    status              TEXT    NOT NULL,
    starts_at_ms        INTEGER,
    expires_at_ms       INTEGER NOT NULL,
    headroom_millionths INTEGER NOT NULL,
    on_duplicate        TEXT    NOT NULL,
    enforcement         TEXT    NOT NULL,
    permissions         TEXT    NOT NULL,
    max_charge          TEXT    NOT NULL,
    refusal_status      INTEGER NOT NULL,
    accounts            TEXT    NOT NULL,
    require_customer    INTEGER NOT NULL,
    metadata            TEXT    NOT NULL,
    created_at_ms       INTEGER NOT NULL
) STRICT;

CREATE INDEX vault_keys_by_age ON vault_keys (created_at_ms, id);
CREATE INDEX vault_keys_by_period ON vault_keys (billing_period, created_at_ms, id);

-- SHA-256 of every secret that opens or opened a key; the current one has no end.
CREATE TABLE vault_key_secrets (
    sha256        BLOB NOT NULL PRIMARY KEY CHECK (length(sha256) = 32),
    vault_key     TEXT NOT NULL REFERENCES vault_keys (id),
    expires_at_ms INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX vault_key_secrets_by_key ON vault_key_secrets (vault_key);

-- reserved and settled are the sums over the cap's reservations. They may exceed max_amount: a cap may be
-- lowered below its usage, and what moved is recorded whatever the cap.
CREATE TABLE caps (
    vault_key      TEXT    NOT NULL REFERENCES vault_keys (id),
    currency       TEXT    NOT NULL CHECK (length(currency) = 3),
    expected_total INTEGER NOT NULL CHECK (expected_total >= 0),
    max_amount     INTEGER NOT NULL CHECK (max_amount >= 0),
    reserved       INTEGER NOT NULL CHECK (reserved >= 0),
    settled        INTEGER NOT NULL CHECK (settled >= 0),
    PRIMARY KEY (vault_key, currency)
) STRICT, WITHOUT ROWID;

CREATE TABLE reservations (
    id                   INTEGER NOT NULL PRIMARY KEY,
    version              INTEGER NOT NULL,
    vault_key            TEXT    NOT NULL REFERENCES vault_keys (id),
    account              TEXT    NOT NULL,
    namespace            TEXT    NOT NULL,
    billing_period       TEXT    NOT NULL,
    customer             TEXT,
    reference            TEXT    NOT NULL,
    slot_claim           BLOB    CHECK (length(slot_claim) = 16),
    intent_claim         BLOB    CHECK (length(intent_claim) = 16),
    holds_claims         INTEGER NOT NULL CHECK (holds_claims = (state <> 'released')),
    operation            TEXT    NOT NULL,
    currency             TEXT    NOT NULL,
    amount               INTEGER NOT NULL CHECK (amount >= 0),
    amount_reserved      INTEGER NOT NULL CHECK (amount_reserved >= 0),
    amount_settled       INTEGER NOT NULL CHECK (amount_settled >= 0),
    state                TEXT    NOT NULL,
    object_id            TEXT,
    send_operation       TEXT    NOT NULL,
    upstream_key         TEXT    NOT NULL,
    fingerprint          BLOB    NOT NULL CHECK (length(fingerprint) = 16),
    sends                INTEGER NOT NULL,
    unproven             INTEGER NOT NULL,
    first_unproven_at_ms INTEGER,
    forward_by_ms        INTEGER NOT NULL,
    deadline_ms          INTEGER NOT NULL,
    attempt              INTEGER NOT NULL,
    outcome_stored       INTEGER NOT NULL,
    created_at_ms        INTEGER NOT NULL,
    resolved_at_ms       INTEGER
) STRICT;

-- A slot and an intent are held by at most one unreleased row. A column of its own says whether a row is
-- that, so that a settle, which changes the state, leaves these indexes alone.
CREATE UNIQUE INDEX reservations_by_slot ON reservations (slot_claim)
    WHERE slot_claim IS NOT NULL AND holds_claims = 1;
CREATE UNIQUE INDEX reservations_by_intent ON reservations (intent_claim)
    WHERE intent_claim IS NOT NULL AND holds_claims = 1;
CREATE INDEX reservations_by_deadline ON reservations (deadline_ms) WHERE state = 'in_flight';
CREATE INDEX reservations_unresolved ON reservations (state, id) WHERE state IN ('held', 'open');
CREATE INDEX reservations_by_object ON reservations (object_id, account) WHERE object_id IS NOT NULL;
CREATE INDEX reservations_by_key ON reservations (vault_key);

-- Idempotency keys as clients sent them; many may point at one reservation.
CREATE TABLE requests (
    digest        BLOB    NOT NULL PRIMARY KEY CHECK (length(digest) = 16),
    key_text      TEXT    NOT NULL,
    reservation   INTEGER NOT NULL REFERENCES reservations (id),
    operation     TEXT    NOT NULL,
    fingerprint   BLOB    NOT NULL CHECK (length(fingerprint) = 16),
    created_at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX requests_by_reservation ON requests (reservation);

-- Observations, one row for each reservation and kind.
CREATE TABLE flags (
    id               INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    kind             TEXT    NOT NULL,
    count            INTEGER NOT NULL CHECK (count > 0),
    reservation      INTEGER NOT NULL REFERENCES reservations (id),
    vault_key        TEXT    NOT NULL REFERENCES vault_keys (id),
    customer         TEXT,
    first_seen_at_ms INTEGER NOT NULL,
    last_seen_at_ms  INTEGER NOT NULL,
    acknowledged_by  TEXT,
    UNIQUE (reservation, kind)
) STRICT;

CREATE INDEX flags_by_key ON flags (vault_key, id);
CREATE INDEX flags_not_acknowledged ON flags (id) WHERE acknowledged_by IS NULL;

-- Who did what. Each hash covers the entry and the hash before, so a change or a gap shows.
CREATE TABLE audit_log (
    id             INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    happened_at_ms INTEGER NOT NULL,
    actor          TEXT    NOT NULL,
    action         TEXT    NOT NULL,
    subject        TEXT    NOT NULL,
    reason         TEXT    NOT NULL,
    detail         TEXT    NOT NULL,
    previous_hash  BLOB    NOT NULL UNIQUE CHECK (length(previous_hash) = 32),
    hash           BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;

-- Admin commands carried out under an idempotency key.
CREATE TABLE control_requests (
    digest      BLOB NOT NULL PRIMARY KEY CHECK (length(digest) = 16),
    fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 16),
    subject     TEXT NOT NULL
) STRICT, WITHOUT ROWID;
