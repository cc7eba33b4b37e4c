// Controller of /api/price/sync: what a source of prices says beside the prices in force.
// Administrators compare with the shipped table and with texts; only root makes this server fetch an address.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { requestOf } from "../core/prices/kept-sources.ts";
import { comparePrices, isFetching } from "../core/prices/sync.ts";
import { ok } from "../http/envelope.ts";
import { plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Role } from "../shared/enums.ts";
import { Failure, refuse } from "../shared/failures.ts";
import { SYNC_SOURCES } from "../shared/price-sync.ts";

const MAX_PREFIXES = 50;

function keptRequest(options: Deps["options"], name: string) {
  const source = options.get("PriceSources").find((each) => each.name === name);
  if (!source) throw refuse("record_missing");
  return requestOf(source);
}

export function priceSync(deps: Deps, session: SessionSettings) {
  return (
    new Elysia({ prefix: "/api/price/sync" })
      .use(policy(session))
      // The kept sources, none of which holds a secret.
      .get("", () => ok(deps.options.get("PriceSources")), { access: "admin" })
      .post(
        "",
        async ({ body, actor }) => {
          const { source, url, text, strip = [], channel_id: channelId, kept } = body;
          const request =
            kept === undefined ? { source, url, text, strip, channelId } : keptRequest(deps.options, kept);
          if (isFetching(request) && actor.role < Role.root)
            throw new Failure("forbidden", "price_source_root");
          const { droppedCount, ...result } = await comparePrices(deps, request);
          return ok({ ...result, dropped_count: droppedCount });
        },
        {
          access: "admin",
          body: t.Object({
            source: t.UnionEnum([...SYNC_SOURCES]),
            url: t.Optional(plainText(2000)),
            text: t.Optional(t.String()),
            channel_id: t.Optional(t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
            kept: t.Optional(plainText(64)),
            strip: t.Optional(t.Array(plainText(100), { maxItems: MAX_PREFIXES })),
          }),
        },
      )
  );
}
