# The rest of the program of docs/integrations/python.md, after the page's own blocks: its billing run.

import json

asked = []
ask_for_another_card = asked.append
first = bill("cus_1", 9900, "2026-08")
again = bill("cus_1", 9900, "2026-08")
bill("cus_declined", 9900, "2026-08")
try:
    bill("cus_2", 25000, "2026-08")
    raise SystemExit("the cap holds 33000")
except StopTheRun as stop:
    cap = stop.__cause__
extra = add_on("cus_1", 500, "2026-08", "addon")
seen = {
    "first": first.id,
    "again": again.id,
    "extra": extra.id,
    "asked": asked,
    "class": type(cap).__name__,
    "shown": {
        "error.http_status": str(cap.http_status),
        "error.error.type": cap.error.type,
        "error.error.code": cap.error.code,
        "error.user_message": cap.user_message,
    },
}
if "client" in globals():
    seen["read"] = client.v1.charges.retrieve(first.id).id
print(json.dumps(seen))
