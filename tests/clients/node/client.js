// Makes Stripe calls with stripe-node, one per line of standard input; see ../README.md.
// Retries and timeouts stay what the SDK makes them.

import { createInterface } from "node:readline";
import Stripe from "stripe";

async function make(call) {
  const { hostname, port } = new URL(call.base_url);
  const stripe = new Stripe(call.api_key, { host: hostname, port, protocol: "http" });
  const options = {};
  if (call.idempotency_key !== undefined) options.idempotencyKey = call.idempotency_key;
  if (call.stripe_account !== undefined) options.stripeAccount = call.stripe_account;
  const params = call.params ?? {};
  switch (call.call) {
    case "charges.create":
      return [await stripe.charges.create(params, options)];
    case "charges.capture":
      return [await stripe.charges.capture(call.id, params, options)];
    case "charges.retrieve":
      return [await stripe.charges.retrieve(call.id, params, options)];
    case "charges.list": {
      const charges = [];
      for await (const charge of stripe.charges.list(params, options)) charges.push(charge);
      return charges;
    }
    case "refunds.create":
      return [await stripe.refunds.create(params, options)];
    default:
      throw new Error(`unknown call ${call.call}`);
  }
}

async function answer(call) {
  try {
    const made = await make(call);
    return {
      class: null,
      code: null,
      type: null,
      status: 200,
      message: null,
      ids: made.map((charge) => charge.id),
      amount_captured: made.reduce((sum, charge) => sum + charge.amount_captured, 0),
    };
  } catch (error) {
    if (!(error instanceof Stripe.errors.StripeError)) throw error;
    return {
      class: error.constructor.name,
      code: error.code ?? null,
      type: error.rawType ?? null,
      status: error.statusCode ?? null,
      message: error.message,
    };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const call = JSON.parse(line);
  const told = { client: "stripe-node", version: Stripe.PACKAGE_VERSION, case: call.case };
  console.log(JSON.stringify({ ...told, ...(await answer(call)) }));
}
