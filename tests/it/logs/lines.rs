//! What each attempt's line tells.

/// Sent, and answered by Stripe.
const SENT: &str = "vault_key reservation request_id stripe_request_id judge_ms reserve_ms stripe_ms settle_ms total_ms";
/// Sent, and not answered.
const UNANSWERED: &str =
    "vault_key reservation request_id judge_ms reserve_ms stripe_ms settle_ms total_ms";
/// Answered with the object that exists.
const REPEATED: &str =
    "vault_key reservation request_id stripe_request_id judge_ms reserve_ms stripe_ms total_ms";
/// Refused by the ledger.
const REFUSED: &str = "vault_key request_id judge_ms reserve_ms total_ms";
/// Refused before it was judged: customer and amount are in the body.
const UNJUDGED: &str = "vault_key request_id total_ms";
/// Refused before it was known whose it is.
const NOBODYS: &str = "request_id total_ms";

/// Each attempt, the fields of its line, and those of which only the name is foretold.
pub(super) const LINES: &[(&str, &str, &str)] = &[
    (
        "sent",
        "amount_minor=9900 billing_period=2026-08 currency=usd customer=cus_1 decision=send \
         operation=charges.create outcome=settled sends=1 state=settled status=200",
        SENT,
    ),
    (
        "repeated",
        "amount_minor=9900 billing_period=2026-08 currency=usd customer=cus_1 \
         decision=answer_with_existing flags=idempotency_key_repeated operation=charges.create \
         state=settled status=200",
        REPEATED,
    ),
    (
        "declined",
        "amount_minor=100 billing_period=2026-08 currency=usd customer=cus_2 decision=send \
         operation=charges.create outcome=stored_refusal sends=1 state=released status=402",
        SENT,
    ),
    (
        "unanswered",
        "amount_minor=100 billing_period=2026-08 code=outcome_unknown currency=usd customer=cus_3 \
         decision=send operation=charges.create outcome=unknown sends=3 state=held status=504",
        UNANSWERED,
    ),
    (
        "answered_late",
        "amount_minor=100 billing_period=2026-08 currency=usd customer=cus_11 decision=send \
         operation=charges.create outcome=settled sends=2 state=settled status=200",
        SENT,
    ),
    (
        "nobody",
        "amount_minor=200 billing_period=2026-08 currency=usd decision=send flags=unattributed \
         operation=charges.create outcome=settled sends=1 state=settled status=200",
        SENT,
    ),
    (
        "authorised",
        "amount_minor=300 billing_period=2026-08 currency=usd customer=cus_4 decision=send \
         operation=charges.create outcome=open sends=1 state=open status=200",
        SENT,
    ),
    (
        "captured",
        "amount_minor=300 billing_period=2026-08 currency=usd customer=cus_4 decision=send \
         operation=charges.capture outcome=settled sends=1 state=settled status=200",
        SENT,
    ),
    (
        "over",
        "amount_minor=105000 billing_period=2026-08 code=spend_cap_reached currency=usd \
         customer=cus_5 decision=refuse operation=charges.create status=402",
        REFUSED,
    ),
    (
        "malformed",
        "billing_period=2026-08 code=parameter_invalid_integer decision=refuse \
         operation=charges.create status=400",
        UNJUDGED,
    ),
    (
        "refund",
        "billing_period=2026-08 code=operation_not_permitted decision=refuse status=403",
        UNJUDGED,
    ),
    (
        "large",
        "billing_period=2026-08 code=request_too_large decision=refuse operation=charges.create \
         status=413",
        UNJUDGED,
    ),
    (
        "unknown",
        "code=vault_key_invalid decision=refuse operation=charges.create status=401",
        NOBODYS,
    ),
    (
        "revoked",
        "billing_period=2026-08 code=vault_key_revoked decision=refuse operation=charges.create \
         status=401",
        UNJUDGED,
    ),
    (
        "cut_off",
        "billing_period=2026-08 code=parameter_missing decision=refuse operation=charges.create \
         status=400",
        UNJUDGED,
    ),
    (
        "left",
        "amount_minor=100 billing_period=2026-08 currency=usd customer=cus_7 decision=send \
         operation=charges.create outcome=settled sends=1 state=settled status=200",
        SENT,
    ),
    (
        "stays",
        "amount_minor=100 billing_period=2026-08 currency=usd customer=cus_8 decision=send \
         operation=charges.create outcome=settled sends=1 state=settled status=200",
        SENT,
    ),
    (
        "full",
        "code=overloaded decision=refuse operation=charges.create status=503",
        NOBODYS,
    ),
    (
        "last",
        "amount_minor=100 billing_period=2026-08 currency=usd customer=cus_10 decision=send \
         operation=charges.create outcome=settled sends=1 state=settled status=200",
        SENT,
    ),
];
