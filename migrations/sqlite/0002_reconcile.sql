-- What the reconciler needs to keep.

-- Whether an answer to a send of unknown outcome was a 5xx: Stripe may still roll that forward. Of rows
-- from before, and of rows an older binary writes, it is not known, so it counts as seen.
ALTER TABLE reservations ADD COLUMN server_error INTEGER NOT NULL DEFAULT 1;

-- What went back of what was settled. It raises no cap.
ALTER TABLE reservations ADD COLUMN amount_refunded INTEGER NOT NULL DEFAULT 0 CHECK (amount_refunded >= 0);

-- Rows that an event's key may still be news to. None of them is on the way of a charge that succeeds.
CREATE INDEX reservations_by_upstream_key ON reservations (upstream_key)
    WHERE state IN ('held', 'open', 'released', 'written_off');

-- Which connected accounts there are.
CREATE INDEX reservations_by_account ON reservations (account) WHERE account <> '';

-- A flag is about a reservation, or about an object that no reservation knows: then it names the object,
-- and has neither reservation nor vault key.
CREATE TABLE flags_2 (
    id               INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    kind             TEXT    NOT NULL,
    count            INTEGER NOT NULL CHECK (count > 0),
    reservation      INTEGER REFERENCES reservations (id),
    vault_key        TEXT    REFERENCES vault_keys (id),
    customer         TEXT,
    first_seen_at_ms INTEGER NOT NULL,
    last_seen_at_ms  INTEGER NOT NULL,
    acknowledged_by  TEXT,
    account          TEXT    NOT NULL DEFAULT '',
    object_id        TEXT,
    UNIQUE (reservation, kind),
    CHECK ((reservation IS NULL) = (vault_key IS NULL)),
    CHECK (reservation IS NOT NULL OR object_id IS NOT NULL)
) STRICT;

INSERT INTO flags_2 (id, kind, count, reservation, vault_key, customer, first_seen_at_ms,
    last_seen_at_ms, acknowledged_by)
SELECT id, kind, count, reservation, vault_key, customer, first_seen_at_ms, last_seen_at_ms,
    acknowledged_by
FROM flags;

DROP TABLE flags;
ALTER TABLE flags_2 RENAME TO flags;

CREATE INDEX flags_by_key ON flags (vault_key, id);
CREATE INDEX flags_not_acknowledged ON flags (id) WHERE acknowledged_by IS NULL;
CREATE UNIQUE INDEX flags_by_object ON flags (object_id, account, kind) WHERE object_id IS NOT NULL;

-- How far the event feed of an account was read, on Stripe's clock. Moves by compare-and-set.
CREATE TABLE feed_cursors (
    account       TEXT    NOT NULL PRIMARY KEY,
    read_until_ms INTEGER NOT NULL,
    read_at_ms    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
