//! The network between a process and Stripe: slow, refusing, losing; what left may arrive long after
//! the connection it left on is gone.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use tokio::sync::oneshot;

use super::replica::Mishaps;
use super::stripe::{Message, Stripe};
use super::world::World;
use crate::proxy::simulated::{Body, Carried, Carrier, Lost};

/// The longest a request may be under way, in milliseconds: far below the hour between the last re-send
/// and the moment Stripe may forget the key.
const TRANSIT_MS_MAX: u64 = 600_000;

/// One process's way to Stripe.
pub(super) struct Line {
    world: Arc<World>,
    stripe: Arc<Stripe>,
    mishaps: Mishaps,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Line")
    }
}

impl Carrier for Line {
    fn carry(&self, request: Request<Body>) -> Carried<'_> {
        Box::pin(self.exchange(request))
    }
}

impl Line {
    pub(super) fn new(world: Arc<World>, stripe: Arc<Stripe>, mishaps: Mishaps) -> Self {
        Self {
            world,
            stripe,
            mishaps,
        }
    }

    async fn exchange(&self, request: Request<Body>) -> Result<Response<Bytes>, Lost> {
        self.connect().await?;
        let (parts, body) = request.into_parts();
        // As hyper: an empty body is not asked for.
        let body = if body.is_end_stream() {
            Bytes::new()
        } else {
            body.collect().await.map_err(|_| Lost::Gone)?.to_bytes()
        };
        let message = Message::new(&parts, &body);
        let answer = self.leave(message);
        self.mishaps.strike().await;
        if self.world.fault("a connection is reset", 30) {
            self.world.pause(0, 3_000).await;
            return Err(Lost::Gone);
        }
        let answer = answer.await.map_err(|_| Lost::Gone)?;
        self.mishaps.strike().await;
        if self.world.fault("an answer is lost", 40) {
            return Err(Lost::Gone);
        }
        if self.world.fault("an answer is cut off", 10) {
            return Err(Lost::CutOff);
        }
        Ok(answer)
    }

    async fn connect(&self) -> Result<(), Lost> {
        self.world.hop().await;
        self.mishaps.strike().await;
        if self.world.fault("no connection", 15) {
            return Err(Lost::NoConnection);
        }
        if self.world.fault("a connection opens slowly", 20) {
            self.world.pause(100, 90_000).await;
        }
        self.mishaps.strike().await;
        Ok(())
    }

    /// From here on the request travels by itself.
    fn leave(&self, message: Message) -> oneshot::Receiver<Response<Bytes>> {
        let (answer, answered) = oneshot::channel();
        let stripe = Arc::clone(&self.stripe);
        let world = Arc::clone(&self.world);
        let number = stripe.left(&message);
        let lost = world.fault("a request is lost", 20);
        let ms = if world.fault("a request is late", 40) {
            world.below(TRANSIT_MS_MAX)
        } else {
            world.below(30)
        };
        let left_ms = world.ms();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            let under_way_ms = u64::try_from(world.ms() - left_ms).unwrap();
            if lost || under_way_ms > TRANSIT_MS_MAX {
                stripe.never(number);
                return;
            }
            let response = stripe.handle(number, message).await;
            world.pause(0, 20).await;
            // Whoever asked may be gone.
            let _gone = answer.send(response);
        });
        answered
    }
}
