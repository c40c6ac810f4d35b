//! How a billing service on Apache `HttpClient` charges twice: straight to Stripe it does, through
//! spendcap it does not, and every call ends with the charge.

mod attempt_ids;
mod jvm;
mod lost;
mod page;
mod race;
mod refusals;
mod retries;
mod route;
mod stable_key;
