"""Makes Stripe calls with stripe-python, one per line of standard input; see ../README.md.

Takes one argument: how the SDK is used. `global` sets the module's settings, `client` makes a StripeClient,
`async` awaits the module's calls. Retries and timeouts stay what the SDK makes them.
"""

import asyncio
import json
import sys

import stripe

try:
    StripeError = stripe.StripeError
except AttributeError:  # before 8.0
    from stripe.error import StripeError

try:
    VERSION = stripe.VERSION
except AttributeError:  # before 8.0
    from stripe.version import VERSION


class Module:
    """The module's own functions, as most programs use them."""

    def __init__(self, call):
        stripe.api_key = call["api_key"]
        stripe.api_base = call["base_url"]
        self.options = {
            name: call[name] for name in ("idempotency_key", "stripe_account") if name in call
        }

    def create(self, params):
        return [stripe.Charge.create(**params, **self.options)]

    def capture(self, charge, params):
        return [stripe.Charge.capture(charge, **params, **self.options)]

    def retrieve(self, charge, params):
        return [stripe.Charge.retrieve(charge, **params, **self.options)]

    def list(self, params):
        return list(stripe.Charge.list(**params, **self.options).auto_paging_iter())

    def refund(self, params):
        return [stripe.Refund.create(**params, **self.options)]


class Client:
    """A StripeClient with its own key and address."""

    def __init__(self, call):
        self.client = stripe.StripeClient(call["api_key"], base_addresses={"api": call["base_url"]})
        self.options = {
            name: call[name] for name in ("idempotency_key", "stripe_account") if name in call
        }

    def create(self, params):
        return [self.client.v1.charges.create(params, self.options)]

    def capture(self, charge, params):
        return [self.client.v1.charges.capture(charge, params, self.options)]

    def retrieve(self, charge, params):
        return [self.client.v1.charges.retrieve(charge, params, self.options)]

    def list(self, params):
        return list(self.client.v1.charges.list(params, self.options).auto_paging_iter())

    def refund(self, params):
        return [self.client.v1.refunds.create(params, self.options)]


class Async(Module):
    """The module's functions for asyncio, which send by httpx. One loop for the life of the program."""

    loop = asyncio.new_event_loop()

    def wait(self, call):
        return self.loop.run_until_complete(call)

    def create(self, params):
        return [self.wait(stripe.Charge.create_async(**params, **self.options))]

    def capture(self, charge, params):
        return [self.wait(stripe.Charge.capture_async(charge, **params, **self.options))]

    def retrieve(self, charge, params):
        return [self.wait(stripe.Charge.retrieve_async(charge, **params, **self.options))]

    def list(self, params):
        async def every_page():
            first = await stripe.Charge.list_async(**params, **self.options)
            return [charge async for charge in first.auto_paging_iter()]

        return self.wait(every_page())

    def refund(self, params):
        return [self.wait(stripe.Refund.create_async(**params, **self.options))]


def make(sdk, call):
    params = call.get("params", {})
    match call["call"]:
        case "charges.create":
            return sdk.create(params)
        case "charges.capture":
            return sdk.capture(call["id"], params)
        case "charges.retrieve":
            return sdk.retrieve(call["id"], params)
        case "charges.list":
            return sdk.list(params)
        case "refunds.create":
            return sdk.refund(params)
        case other:
            raise ValueError(f"unknown call {other}")


def answer(use, call):
    try:
        made = make(use(call), call)
    except StripeError as error:
        # The exception's own `code` is set for some statuses only.
        told = error.error
        code = getattr(told, "code", None)
        return {
            "class": type(error).__name__,
            "code": code,
            "code_hidden": error.code != code,
            "type": getattr(told, "type", None),
            "status": error.http_status,
            "message": error.user_message,
        }
    return {
        "class": None,
        "code": None,
        "type": None,
        "status": 200,
        "message": None,
        "ids": [one["id"] for one in made],
        "amount_captured": sum(one["amount_captured"] for one in made),
    }


def main():
    use = {"global": Module, "client": Client, "async": Async}[sys.argv[1]]
    for line in sys.stdin:
        call = json.loads(line)
        told = {"client": "stripe-python", "version": VERSION, "case": call["case"]}
        print(json.dumps({**told, **answer(use, call)}), flush=True)


main()
