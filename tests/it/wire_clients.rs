//! Clients of other languages that send what an SDK sends on the wire (contract §3, §4), where the SDK itself
//! is not to be had: curl, Go's net/http, PHP's curl extension, Ruby's net/http.

mod curl;
mod lost;
mod sender;
mod stripe_wire;
