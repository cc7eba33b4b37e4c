// Site options for root: read all that is not secret, set one at a time, reset the model ratios.
// What is listed follows from the option rows: secrets go in and never come out.
import { Elysia, t } from "elysia";
import { settingRows } from "../core/options/setting-rows.ts";
import type { Deps } from "../core/deps.ts";
import { refuseUsedGroupsIn } from "../core/prices/group-use.ts";
import { priceState } from "../core/prices/revisions.ts";
import { isSensitive } from "../core/options/sensitive.ts";
import { requireFreshProof } from "../core/users/step-up.ts";
import { checkDiscovery, waysInLoss } from "../core/users/providers/methods.ts";
import type { WaysInLoss } from "../core/users/providers/methods.ts";
import { shippedTexts } from "../core/prices/origins.ts";
import { authorOf } from "../http/audit-actor.ts";
import { done, ok } from "../http/envelope.ts";
import { messageText } from "../http/messages.ts";
import { given, plainText } from "../http/plain-text.ts";
import { queryText } from "../http/queries/sent.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { refuse } from "../shared/failures.ts";

const optionBody = t.Object({
  key: t.String({ minLength: 1, maxLength: 128 }),
  // Older consoles send text only; a bare boolean or number means the same. Absent and null: what they have no text for.
  value: given(t.Union([plainText(4_000_000), t.Boolean(), t.Number()])),
  /** † Why, for the history of prices. */
  note: given(plainText(1000)),
});

/** Only what there is: nobody is told of 0 accounts. */
const foundIn = (lost: WaysInLoss): Partial<WaysInLoss> =>
  Object.fromEntries(Object.entries(lost).filter(([, count]) => count > 0));

export function options(deps: Deps, session: SessionSettings) {
  return (
    new Elysia({ prefix: "/api/option" })
      .use(policy(session))
      .get("/", () => ({ ...ok(deps.options.entries()), secrets_set: deps.options.secretsSet() }), {
        access: "root",
      })
      .get(
        "/rows",
        ({ query }) => {
          const shipped = shippedTexts(deps.options.get("QuotaPerUnit"));
          return ok(settingRows(deps.options, { isFull: query.full === "true", shipped }));
        },
        { access: "root", query: t.Object({ full: t.Optional(t.String()) }) },
      )
      // † What would go with an option's new text, told before it is saved.
      .get(
        "/ways_in",
        async ({ query, actor }) => ok(await waysInLoss(deps, actor.id, query.key, query.value)),
        { access: "root", query: t.Object({ key: plainText(128), value: plainText(4000) }) },
      )
      .put(
        "/",
        async ({ body, actor, session: current, request, address }) => {
          const { key, value } = body;
          const text = value === undefined || value === null ? undefined : String(value);
          // Whoever switches it on would be the first who reaches nothing else.
          if (key === "AdminSecondFactorRequired" && text === "true" && !actor.secondFactor)
            throw refuse("option_needs_own_factor");
          if (isSensitive(key)) await requireFreshProof(deps, { actor, session: current }, "with_factor");
          if (key === "GroupRatio" && text !== undefined)
            await refuseUsedGroupsIn(deps.db, (await priceState(deps.db)).texts, text);
          await checkDiscovery(deps, key, text ?? "");
          const lost = await waysInLoss(deps, actor.id, key, text ?? "");
          await deps.options.change(key, text, {
            ...authorOf({ actor, session: current, request, address }),
            note: body.note ?? "",
          });
          return {
            ...done(),
            // Of a way in that was switched off: how many accounts had only that. Of another host: how many passkeys were bound
            // to the one before.
            ...foundIn(lost),
          };
        },
        { access: "root", body: optionBody },
      )
      // What sessions are bound to: on this node, and where nodes share it on all of them.
      .get(
        "/channel_affinity_cache",
        async () => {
          const { total, max, byRule, isShared } = await deps.affinity.stats(deps.clock.monotonicMs());
          return ok({
            enabled: deps.options.get("channel_affinity_setting.enabled"),
            total,
            by_rule_name: byRule,
            cache_capacity: max,
            cache_algo: "lru",
            is_shared: isShared,
          });
        },
        { access: "root" },
      )
      .delete(
        "/channel_affinity_cache",
        async ({ query }) => {
          const { all, rule_name: rule = "" } = query;
          if (all !== "true" && rule === "") throw refuse("affinity_clear_what");
          const { deleted, isShared } = await deps.affinity.clear(all === "true" ? undefined : rule);
          return ok({ deleted, is_shared: isShared });
        },
        {
          access: "root",
          query: t.Object({
            /** true: the bindings of every rule. */
            all: queryText(5),
            rule_name: queryText(64),
          }),
        },
      )
      .post(
        "/rest_model_ratio",
        async ({ language, actor, session: current, request, address }) => {
          const by = authorOf({ actor, session: current, request, address });
          const author = { ...by, kind: "reset" as const };
          const { ModelRatio } = shippedTexts(deps.options.get("QuotaPerUnit"));
          await deps.options.set("ModelRatio", ModelRatio, author);
          return done(messageText("model_ratio_reset", language));
        },
        { access: "root" },
      )
  );
}
