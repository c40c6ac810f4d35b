//! Every refusal of design §4: how to get it, and what its answer says.

mod provoked;

use std::pin::Pin;

use super::client::Record;
use super::stage::{Ask, Closed, Stage};

/// A way to be refused.
pub(super) struct Case {
    /// In the lines that go to the SDK's program, and in its customers' ids.
    pub(super) name: &'static str,
    pub(super) status: u16,
    /// `error.code`; none where Stripe names none.
    pub(super) code: Option<&'static str>,
    pub(super) error_type: &'static str,
    /// What `Stripe-Should-Retry` says.
    pub(super) should_retry: bool,
    /// On the page.
    pub(super) what: &'static str,
    pub(super) provoke: Provoke,
}

/// Prepares the refusal for a customer of this name.
type Provoke = for<'a> fn(&'a Stage, &'a str) -> Pin<Box<dyn Future<Output = Ask> + Send + 'a>>;

impl Case {
    const fn invalid(
        status: u16,
        code: &'static str,
        what: &'static str,
        provoke: Provoke,
    ) -> Self {
        Self {
            name: code,
            status,
            code: Some(code),
            error_type: "invalid_request_error",
            should_retry: false,
            what,
            provoke,
        }
    }

    const fn api(status: u16, code: &'static str, what: &'static str, provoke: Provoke) -> Self {
        Self {
            error_type: "api_error",
            should_retry: true,
            ..Self::invalid(status, code, what, provoke)
        }
    }

    const fn called(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    const fn retried(mut self) -> Self {
        self.should_retry = true;
        self
    }

    const fn typed(mut self, error_type: &'static str) -> Self {
        self.error_type = error_type;
        self
    }

    /// The SDK shows what was answered, and did not try again where it was told not to.
    #[track_caller]
    pub(super) fn check(&self, record: &Record) {
        let Record { class, status, .. } = record;
        assert!(class.is_some(), "{}: {record:#?}", self.name);
        assert_eq!(*status, Some(self.status), "{record:#?}");
        assert_eq!(record.code.as_deref(), self.code, "{record:#?}");
        let shown = record.error_type.as_deref();
        assert_eq!(shown, Some(self.error_type), "{record:#?}");
        if !self.should_retry {
            assert_eq!(record.retries, 0, "{record:#?}");
        }
    }
}

/// In the order of the README's table, with a bank's decline before them for comparison.
pub(super) const CASES: &[Case] = &[
    Case::invalid(
        402,
        "card_declined",
        "the bank declined: Stripe's own answer",
        |s, who| Box::pin(provoked::declined(s, who)),
    )
    .typed("card_error"),
    Case::invalid(
        402,
        "spend_cap_reached",
        "the cap does not hold that much more",
        |s, who| Box::pin(provoked::cap(s, who, 402)),
    ),
    Case::invalid(
        403,
        "spend_cap_reached",
        "the same under a key with `refusal_status = 403`",
        |s, who| Box::pin(provoked::cap(s, who, 403)),
    )
    .called("spend_cap_reached_403"),
    Case::invalid(
        402,
        "charge_limit_exceeded",
        "larger than the key's largest single charge",
        |s, who| Box::pin(provoked::largest(s, who, 402)),
    ),
    Case::invalid(
        403,
        "charge_limit_exceeded",
        "the same under a key with `refusal_status = 403`",
        |s, who| Box::pin(provoked::largest(s, who, 403)),
    )
    .called("charge_limit_exceeded_403"),
    Case::invalid(
        400,
        "duplicate_customer_period",
        "charged already, and the key rejects duplicates",
        |s, who| Box::pin(provoked::duplicate(s, who)),
    )
    .typed("idempotency_error"),
    Case {
        code: None,
        ..Case::invalid(
            400,
            "idempotency_key_reused",
            "the idempotency key came with other parameters",
            |s, who| Box::pin(provoked::reused(s, who)),
        )
        .typed("idempotency_error")
    },
    Case::invalid(
        400,
        "currency_not_allowed",
        "the key has no cap in that currency",
        |s, who| Box::pin(provoked::currency(s, who)),
    ),
    Case::invalid(
        400,
        "customer_required",
        "the key wants a customer, and none was named",
        |s, who| Box::pin(provoked::nobody(s, who)),
    ),
    Case::invalid(
        400,
        "parameter_invalid_integer",
        "a malformed parameter; the code is Stripe's own",
        |s, who| Box::pin(provoked::malformed(s, who)),
    ),
    Case::invalid(
        400,
        "charge_already_captured",
        "a capture of what was captured past spendcap",
        |s, who| Box::pin(provoked::captured(s, who)),
    ),
    Case::invalid(
        404,
        "resource_missing",
        "a capture of what is not there",
        |s, who| Box::pin(provoked::missing(s, who)),
    ),
    Case::invalid(401, "vault_key_invalid", "not a vault key", |s, who| {
        Box::pin(provoked::invalid(s, who))
    }),
    Case::invalid(
        401,
        "vault_key_revoked",
        "the vault key was revoked",
        |s, who| Box::pin(provoked::revoked(s, who)),
    ),
    Case::invalid(401, "vault_key_expired", "its time is over", |s, who| {
        Box::pin(async move { s.ask_expired(who) })
    }),
    Case::invalid(
        401,
        "vault_key_not_yet_valid",
        "its time has not come",
        |s, who| Box::pin(provoked::early(s, who)),
    ),
    Case::invalid(
        403,
        "vault_key_stopped",
        "more money moved than was reserved",
        |s, who| Box::pin(provoked::stopped(s, who)),
    ),
    Case::invalid(
        403,
        "operation_not_permitted",
        "an operation that is not on the key's list",
        |s, who| Box::pin(provoked::operation(s, who)),
    ),
    Case::invalid(
        403,
        "account_not_permitted",
        "an account that is not on the key's list",
        |s, who| Box::pin(provoked::account(s, who)),
    ),
    Case::invalid(
        409,
        "idempotency_key_in_use",
        "the first request is still running",
        |s, who| Box::pin(provoked::in_use(s, who)),
    )
    .retried(),
    Case::invalid(
        409,
        "outcome_unknown",
        "an earlier attempt is held, and this one is not the same",
        |s, who| Box::pin(provoked::held(s, who)),
    )
    .retried()
    .called("outcome_unknown_409"),
    Case::invalid(
        413,
        "request_too_large",
        "the body is over the limit",
        |s, who| Box::pin(provoked::large(s, who)),
    ),
    Case::api(
        502,
        "upstream_unreachable",
        "no connection to Stripe",
        |s, who| Box::pin(async move { s.ask_closed(Closed::StripeUnreachable, who) }),
    ),
    Case::api(
        502,
        "upstream_failed",
        "the charge exists and could not be read",
        |s, who| Box::pin(provoked::unreadable(s, who)),
    ),
    Case::api(
        503,
        "ledger_unavailable",
        "the ledger cannot be written",
        |s, who| Box::pin(async move { s.ask_closed(Closed::NoLedger, who) }),
    ),
    Case::api(
        503,
        "ledger_lost_commits",
        "the ledger may not know every charge",
        |s, who| Box::pin(async move { s.ask_closed(Closed::LostCommits, who) }),
    ),
    Case::api(503, "overloaded", "too many requests at once", |s, who| {
        Box::pin(async move { s.ask_closed(Closed::NoRoom, who) })
    }),
    Case::api(
        503,
        "upstream_unhealthy",
        "too many unknown outcomes in a row",
        |s, who| Box::pin(async move { s.ask_closed(Closed::StripeUnhealthy, who) }),
    ),
    Case::api(
        504,
        "outcome_unknown",
        "sent, and no answer came, however often",
        |s, who| Box::pin(provoked::unanswered(s, who)),
    )
    .called("outcome_unknown_504"),
];
