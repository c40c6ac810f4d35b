-- The ledger, as in migrations/sqlite under the same number. Times are milliseconds since 1970 on the
-- store's clock, amounts are minor units.
-- States, kinds and operations are stored by name, so that an operator can read them.

-- Facts about this ledger: min_binary (the oldest version that may run on this schema), and, once
-- pinned, account and mode.
CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

INSERT INTO meta (name, value) VALUES ('min_binary', '0.1.0');

-- permissions, max_charge, accounts and metadata are JSON.
CREATE TABLE vault_keys (
    id                  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    secret_hint         TEXT    NOT NULL,
    billing_period      TEXT    NOT NULL,
    namespace           TEXT    NOT NULL,
    status              TEXT    NOT NULL,
    starts_at_ms        BIGINT,
    expires_at_ms       BIGINT  NOT NULL,
    headroom_millionths BIGINT  NOT NULL,
    on_duplicate        TEXT    NOT NULL,
    enforcement         TEXT    NOT NULL,
    permissions         TEXT    NOT NULL,
    max_charge          TEXT    NOT NULL,
    refusal_status      BIGINT  NOT NULL,
    accounts            TEXT    NOT NULL,
    require_customer    BOOLEAN NOT NULL,
    metadata            TEXT    NOT NULL,
    created_at_ms       BIGINT  NOT NULL
);

CREATE INDEX vault_keys_by_age ON vault_keys (created_at_ms, id);
CREATE INDEX vault_keys_by_period ON vault_keys (billing_period, created_at_ms, id);

-- SHA-256 of every secret that opens or opened a key; the current one has no end.
CREATE TABLE vault_key_secrets (
    sha256        BYTEA NOT NULL PRIMARY KEY CHECK (length(sha256) = 32),
    vault_key     TEXT COLLATE "C" NOT NULL REFERENCES vault_keys (id),
    expires_at_ms BIGINT
);

CREATE INDEX vault_key_secrets_by_key ON vault_key_secrets (vault_key);

-- reserved and settled are the sums over the cap's reservations. They may exceed max_amount: a cap may be
-- lowered below its usage, and what moved is recorded whatever the cap.
CREATE TABLE caps (
    vault_key      TEXT COLLATE "C" NOT NULL REFERENCES vault_keys (id),
    currency       TEXT    NOT NULL CHECK (length(currency) = 3),
    expected_total BIGINT  NOT NULL CHECK (expected_total >= 0),
    max_amount     BIGINT  NOT NULL CHECK (max_amount >= 0),
    reserved       BIGINT  NOT NULL CHECK (reserved >= 0),
    settled        BIGINT  NOT NULL CHECK (settled >= 0),
    PRIMARY KEY (vault_key, currency)
);

CREATE TABLE reservations (
    id                   BIGINT  NOT NULL PRIMARY KEY,
    version              BIGINT  NOT NULL,
    vault_key            TEXT COLLATE "C" NOT NULL REFERENCES vault_keys (id),
    account              TEXT    NOT NULL,
    namespace            TEXT    NOT NULL,
    billing_period       TEXT    NOT NULL,
    customer             TEXT,
    reference            TEXT    NOT NULL,
    slot_claim           BYTEA    CHECK (length(slot_claim) = 16),
    intent_claim         BYTEA    CHECK (length(intent_claim) = 16),
    operation            TEXT    NOT NULL,
    currency             TEXT    NOT NULL,
    amount               BIGINT  NOT NULL CHECK (amount >= 0),
    amount_reserved      BIGINT  NOT NULL CHECK (amount_reserved >= 0),
    amount_settled       BIGINT  NOT NULL CHECK (amount_settled >= 0),
    state                TEXT    NOT NULL,
    object_id            TEXT,
    send_operation       TEXT    NOT NULL,
    upstream_key         TEXT    NOT NULL,
    fingerprint          BYTEA    NOT NULL CHECK (length(fingerprint) = 16),
    sends                BIGINT  NOT NULL,
    unproven             BIGINT  NOT NULL,
    first_unproven_at_ms BIGINT,
    forward_by_ms        BIGINT  NOT NULL,
    deadline_ms          BIGINT  NOT NULL,
    attempt              BIGINT  NOT NULL,
    outcome_stored       BOOLEAN NOT NULL,
    created_at_ms        BIGINT  NOT NULL,
    resolved_at_ms       BIGINT
);

-- A slot and an intent are held by at most one unreleased row.
CREATE UNIQUE INDEX reservations_by_slot ON reservations (slot_claim)
    WHERE slot_claim IS NOT NULL AND state <> 'released';
CREATE UNIQUE INDEX reservations_by_intent ON reservations (intent_claim)
    WHERE intent_claim IS NOT NULL AND state <> 'released';
CREATE INDEX reservations_by_deadline ON reservations (deadline_ms) WHERE state = 'in_flight';
CREATE INDEX reservations_unresolved ON reservations (state, id) WHERE state IN ('held', 'open');
CREATE INDEX reservations_by_object ON reservations (object_id, account) WHERE object_id IS NOT NULL;
CREATE INDEX reservations_by_key ON reservations (vault_key);

-- Idempotency keys as clients sent them; many may point at one reservation.
CREATE TABLE requests (
    digest        BYTEA    NOT NULL PRIMARY KEY CHECK (length(digest) = 16),
    key_text      TEXT    NOT NULL,
    reservation   BIGINT  NOT NULL REFERENCES reservations (id),
    operation     TEXT    NOT NULL,
    fingerprint   BYTEA    NOT NULL CHECK (length(fingerprint) = 16),
    created_at_ms BIGINT  NOT NULL
);

CREATE INDEX requests_by_reservation ON requests (reservation);

-- Observations, one row for each reservation and kind.
CREATE TABLE flags (
    id               BIGINT  GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    kind             TEXT    NOT NULL,
    count            BIGINT  NOT NULL CHECK (count > 0),
    reservation      BIGINT  NOT NULL REFERENCES reservations (id),
    vault_key        TEXT COLLATE "C" NOT NULL REFERENCES vault_keys (id),
    customer         TEXT,
    first_seen_at_ms BIGINT  NOT NULL,
    last_seen_at_ms  BIGINT  NOT NULL,
    acknowledged_by  TEXT,
    UNIQUE (reservation, kind)
);

CREATE INDEX flags_by_key ON flags (vault_key, id);
CREATE INDEX flags_not_acknowledged ON flags (id) WHERE acknowledged_by IS NULL;

-- Who did what. Each hash covers the entry and the hash before, so a change or a gap shows.
CREATE TABLE audit_log (
    id             BIGINT  GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    happened_at_ms BIGINT  NOT NULL,
    actor          TEXT    NOT NULL,
    action         TEXT    NOT NULL,
    subject        TEXT    NOT NULL,
    reason         TEXT    NOT NULL,
    detail         TEXT    NOT NULL,
    previous_hash  BYTEA    NOT NULL UNIQUE CHECK (length(previous_hash) = 32),
    hash           BYTEA    NOT NULL CHECK (length(hash) = 32)
);

-- Admin commands carried out under an idempotency key.
CREATE TABLE control_requests (
    digest      BYTEA NOT NULL PRIMARY KEY CHECK (length(digest) = 16),
    fingerprint BYTEA NOT NULL CHECK (length(fingerprint) = 16),
    subject     TEXT NOT NULL
);

-- Reservation ids come in blocks of 1024. A block's number is made of the time in milliseconds and the
-- low 11 bits of this sequence: no id comes twice even where a failover has set the sequence back.
CREATE SEQUENCE reservation_id_blocks AS BIGINT CYCLE;
