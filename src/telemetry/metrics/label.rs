//! Labels whose values are closed lists, and tables with one metric for each value: the handle is found
//! by a match, so that counting costs no look-up, and a value without a metric does not compile.

/// Declares a label and its table.
macro_rules! closed_label {
    (
        $(#[$doc:meta])* $label:ident, $table:ident:
        $($(#[$variant_doc:meta])* $variant:ident, $field:ident = $text:expr;)+
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $label {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $label {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The label's value.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        /// One of each.
        #[derive(Debug)]
        pub(super) struct $table<T> {
            $($field: T,)+
        }

        impl<T> $table<T> {
            pub(super) fn of_each(mut make: impl FnMut($label) -> T) -> Self {
                Self {
                    $($field: make($label::$variant),)+
                }
            }

            pub(super) fn of(&self, label: $label) -> &T {
                match label {
                    $($label::$variant => &self.$field,)+
                }
            }
        }
    };
}

use http::StatusCode;

use crate::domain::operation::MoneyOperation;

closed_label! {
    /// What a request does.
    Operation, PerOperation:
    /// `POST /v1/charges`.
    ChargesCreate, charges_create = MoneyOperation::ChargesCreate.as_str();
    /// `POST /v1/charges/{id}/capture`.
    ChargesCapture, charges_capture = MoneyOperation::ChargesCapture.as_str();
    /// A read that a vault key may make, or one of ours on behalf of a request.
    Read, read = "read";
    /// Everything that was not judged, and what concerns spendcap alone.
    Other, other = "other";
}

impl From<MoneyOperation> for Operation {
    fn from(operation: MoneyOperation) -> Self {
        match operation {
            MoneyOperation::ChargesCreate => Self::ChargesCreate,
            MoneyOperation::ChargesCapture => Self::ChargesCapture,
        }
    }
}

closed_label! {
    /// What was decided about a request.
    Decision, PerDecision:
    /// A reservation was made and the request sent, or sent again.
    Send, send = "send";
    /// The object that exists is the answer.
    AnswerWithExisting, answer_with_existing = "answer_with_existing";
    /// It moves no money and was let through.
    Pass, pass = "pass";
    /// It was refused, and nothing was sent.
    Refuse, refuse = "refuse";
}

closed_label! {
    /// What became of a request for what was charged already.
    DuplicateAction, PerDuplicateAction:
    /// It was answered with the charge that exists.
    Replayed, replayed = "replayed";
    /// It was refused, under `on_duplicate = reject`.
    Rejected, rejected = "rejected";
    /// A second charge was let through.
    Passed, passed = "passed";
    /// It ended in 409: the first is running, or its outcome is unknown.
    Waited, waited = "waited";
}

closed_label! {
    /// What Stripe answered.
    UpstreamStatus, PerUpstreamStatus:
    /// Success.
    Success, success = "2xx";
    /// A redirect, which is not followed.
    Redirect, redirect = "3xx";
    /// A refusal, such as a decline.
    ClientError, client_error = "4xx";
    /// A failure of Stripe's.
    ServerError, server_error = "5xx";
    /// Sent, and no complete answer came.
    None, none = "none";
    /// No connection could be opened, or nothing left in time.
    Unreachable, unreachable = "unreachable";
}

impl From<StatusCode> for UpstreamStatus {
    /// A client never sees an informational status.
    fn from(status: StatusCode) -> Self {
        match status.as_u16() {
            ..=299 => Self::Success,
            300..=399 => Self::Redirect,
            400..=499 => Self::ClientError,
            500.. => Self::ServerError,
        }
    }
}

impl Default for Decision {
    /// Nothing was let through yet.
    fn default() -> Self {
        Self::Refuse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_money_operation_has_its_own_label() {
        for operation in MoneyOperation::ALL {
            assert_eq!(Operation::from(operation).as_str(), operation.as_str());
        }
    }
}
