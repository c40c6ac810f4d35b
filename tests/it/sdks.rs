//! Stripe's own SDKs as clients: what they charge, what they retry by themselves, and what their users see
//! of a refusal. The last is written down in `docs/sdks.md`.

mod client;
mod life;
mod tap;

use client::{CLIENTS, Client, Sdk};
