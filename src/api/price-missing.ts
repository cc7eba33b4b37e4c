// Controller of /api/price/missing: models without a price, and the shipped table's for them in one go.
// Administrators look; root sets.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { missingPrices, setMissingPrices } from "../core/prices/missing.ts";
import { authorOf } from "../http/audit-actor.ts";
import { ok } from "../http/envelope.ts";
import { plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

const MOST_MODELS = 20_000;

export function priceMissing(deps: Deps, session: SessionSettings) {
  return new Elysia({ prefix: "/api/price/missing" })
    .use(policy(session))
    .get(
      "",
      async ({ query }) => {
        const models = query.models?.split(",").flatMap((name) => name.trim() || []);
        return ok(await missingPrices(deps, models ?? deps.routing.enabledModels()));
      },
      { access: "admin", query: t.Object({ models: t.Optional(plainText(20_000)) }) },
    )
    .post(
      "",
      async ({ body, actor, session: current, request, address }) => {
        const models = body.models ?? deps.routing.enabledModels();
        const author = authorOf({ actor, session: current, request, address });
        return ok(await setMissingPrices(deps, { models, note: body.note ?? "" }, author));
      },
      {
        access: "root",
        body: t.Object({
          models: t.Optional(t.Array(plainText(255), { maxItems: MOST_MODELS })),
          note: t.Optional(plainText(1000)),
        }),
      },
    );
}
