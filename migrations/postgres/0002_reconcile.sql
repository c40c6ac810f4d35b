-- What the reconciler needs to keep. See the SQLite migration of the same number for the reasons.

ALTER TABLE reservations ADD COLUMN server_error BOOLEAN NOT NULL DEFAULT TRUE;

ALTER TABLE reservations ADD COLUMN amount_refunded BIGINT NOT NULL DEFAULT 0 CHECK (amount_refunded >= 0);

CREATE INDEX reservations_by_upstream_key ON reservations (upstream_key)
    WHERE state IN ('held', 'open', 'released', 'written_off');

CREATE INDEX reservations_by_account ON reservations (account) WHERE account <> '';

ALTER TABLE flags ALTER COLUMN reservation DROP NOT NULL;
ALTER TABLE flags ALTER COLUMN vault_key DROP NOT NULL;
ALTER TABLE flags ADD COLUMN account TEXT NOT NULL DEFAULT '';
ALTER TABLE flags ADD COLUMN object_id TEXT;
ALTER TABLE flags ADD CHECK ((reservation IS NULL) = (vault_key IS NULL));
ALTER TABLE flags ADD CHECK (reservation IS NOT NULL OR object_id IS NOT NULL);

CREATE UNIQUE INDEX flags_by_object ON flags (object_id, account, kind) WHERE object_id IS NOT NULL;

CREATE TABLE feed_cursors (
    account       TEXT   NOT NULL PRIMARY KEY,
    read_until_ms BIGINT NOT NULL,
    read_at_ms    BIGINT NOT NULL
);
