// The rest of the program of docs/integrations/node.md, after the page's own blocks: its billing run.

const asked = [];

function askForAnotherCard(customer) {
  asked.push(customer);
}

const first = await bill("cus_1", 9900, "2026-08");
const again = await bill("cus_1", 9900, "2026-08");
await bill("cus_declined", 9900, "2026-08");
const stop = await bill("cus_2", 25000, "2026-08").catch((error) => error);
if (!(stop instanceof StopTheRun)) throw new Error("the cap holds 33000", { cause: stop });
const cap = stop.cause;
const extra = await addOn("cus_1", 500, "2026-08", "addon");
console.log(
  JSON.stringify({
    first: first.id,
    again: again.id,
    extra: extra.id,
    asked,
    class: cap.constructor.name,
    shown: {
      "error.statusCode": String(cap.statusCode),
      "error.rawType": cap.rawType,
      "error.code": cap.code,
      "error.message": cap.message,
    },
  }),
);
