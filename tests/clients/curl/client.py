"""Makes Stripe calls with plain `curl -u`, one per line of standard input; see ../README.md.

What a user of curl sees is its exit code, with --fail-with-body, and the answer.
"""

import json
import subprocess
import sys
from urllib.parse import quote

PATHS = {
    "charges.create": "/v1/charges",
    "charges.capture": "/v1/charges/{id}/capture",
    "charges.retrieve": "/v1/charges/{id}",
    "charges.list": "/v1/charges",
    "refunds.create": "/v1/refunds",
}
READS = ("charges.retrieve", "charges.list")


def fields(params):
    for name, value in params.items():
        if isinstance(value, dict):
            yield from ((f"{name}[{inner}]", text) for inner, text in value.items())
        else:
            yield name, json.dumps(value) if isinstance(value, bool) else str(value)


def send(call, params):
    """curl's exit code, its complaint, the status, and the answer where it is an object of JSON."""
    path = PATHS[call["call"]].format(id=quote(call.get("id", ""), safe=""))
    command = ["curl", "--silent", "--show-error", "--noproxy", "*", "--fail-with-body", "--max-time", "80"]
    command += ["--write-out", "\n%{http_code}", "-u", call["api_key"] + ":", call["base_url"] + path]
    command += ["--get"] if call["call"] in READS else ["--request", "POST"]
    if "idempotency_key" in call:
        command += ["-H", "Idempotency-Key: " + call["idempotency_key"]]
    if "stripe_account" in call:
        command += ["-H", "Stripe-Account: " + call["stripe_account"]]
    # A long text does not fit the command line.
    form = "&".join(f"{quote(name)}={quote(value)}" for name, value in fields(params))
    command += ["--data", "@-"] if form else []
    ran = subprocess.run(command, input=form, capture_output=True, text=True, timeout=90)
    body, _, status = ran.stdout.rpartition("\n")
    try:
        answer = json.loads(body)
    except ValueError:
        answer = {}
    return ran.returncode, ran.stderr.strip(), int(status) or None, answer if isinstance(answer, dict) else {}


def make(call):
    params = dict(call.get("params", {}))
    made = []
    while True:
        exit_code, complaint, status, answer = send(call, params)
        if exit_code:
            error = answer.get("error", {})
            return {
                "class": f"exit {exit_code}",
                "code": error.get("code"),
                "type": error.get("type"),
                "status": status,
                "message": error.get("message", complaint),
            }
        made += answer["data"] if answer["object"] == "list" else [answer]
        if not answer.get("has_more"):
            break
        params["starting_after"] = made[-1]["id"]
    captured = sum(one.get("amount_captured", 0) for one in made)
    return {"class": None, "status": status, "ids": [one["id"] for one in made], "amount_captured": captured}


for line in sys.stdin:
    call = json.loads(line)
    told = {"client": "curl", "version": "-u", "case": call["case"]}
    print(json.dumps({**told, **make(call)}), flush=True)
