use stripe::{Client, ClientBuilder, IdempotencyKey, RequestStrategy, StripeError, StripeRequest};
use stripe_core::charge::CreateCharge;
use stripe_types::Currency;

/// The two lines that change: the vault key, and the URL. It must end in a slash.
pub fn client(vault_key: &str, spendcap_url: &str) -> Result<Client, StripeError> {
    ClientBuilder::new(vault_key)
        .url(format!("{spendcap_url}/"))
        .build()
}

/// What became of a customer's bill.
#[derive(Debug)]
pub enum Billed {
    Charged {
        charge: String,
    },
    /// Nothing was charged, and no card was declined: stop the run and ask why.
    CapReached,
    CardDeclined,
}

/// Bills 99.00 USD. Call it as often as you like: it is one charge.
pub async fn bill(client: &Client, customer: &str, period: &str) -> Result<Billed, StripeError> {
    // The key says what is paid for, so it is the same in every attempt and after a restart.
    let key = IdempotencyKey::new(format!("bill-{customer}-{period}"))
        .map_err(|error| StripeError::ClientError(error.to_string()))?;
    let charge = CreateCharge::new()
        .amount(9900)
        .currency(Currency::USD)
        .customer(customer)
        .customize()
        .request_strategy(RequestStrategy::Idempotent(key))
        .send(client)
        .await;
    match charge {
        Ok(charge) => Ok(Billed::Charged {
            charge: charge.id.to_string(),
        }),
        Err(StripeError::Stripe(error, status)) => {
            let code = error.code.as_ref().map_or("", |code| code.as_str());
            match code {
                "spend_cap_reached" | "charge_limit_exceeded" => Ok(Billed::CapReached),
                "card_declined" => Ok(Billed::CardDeclined),
                _ => Err(StripeError::Stripe(error, status)),
            }
        }
        Err(error) => Err(error),
    }
}
