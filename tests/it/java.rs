//! How a billing service on Apache `HttpClient` charges twice: straight to Stripe it does, through
//! spendcap it does not, and every call ends with the charge.

mod jvm;
mod retries;
mod route;
mod stable_key;
