// Controller of the catalogue: models, groups and prices as guests, users and administrators may see them.
// Everything here is read from memory.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import {
  modelsForUser,
  presetModelsByType,
  pricedModelsForUser,
  pricingFor,
} from "../core/channels/models.ts";
import { unpricedForUser } from "../core/channels/unpriced.ts";
import { noticesInForce } from "../core/site/model-notices.ts";
import { ratioConfig } from "../core/prices/ratio-config.ts";
import { Failure } from "../shared/failures.ts";
import { groupChoices, groupNames, usableGroups } from "../core/users/groups.ts";
import { ok } from "../http/envelope.ts";
import { plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

export function catalog(deps: Deps, session: SessionSettings) {
  return (
    new Elysia({ prefix: "/api" })
      .use(policy(session))
      // Pricing and models carry no message: their clients know them so.
      .get("/models", () => ({ success: true as const, data: presetModelsByType(deps) }), { access: "user" })
      .get("/pricing", ({ visitor }) => ({ success: true as const, ...pricingFor(deps, visitor) }), {
        open: "visitor",
      })
      // † Other instances read prices here, where the operator lets them.
      .get(
        "/ratio_config",
        () => {
          if (!deps.options.get("ExposeRatioEnabled")) throw new Failure("forbidden", "ratio_config_hidden");
          return ok(ratioConfig(deps.prices.tables()));
        },
        { open: "public" },
      )
      .get("/group/", () => ok(groupNames(deps)), { access: "admin" })
      // † `group` narrows the answer to one of the caller's usable groups.
      .get("/user/models", ({ actor, query }) => ok(modelsForUser(deps, actor, query.group)), {
        access: "user",
        query: t.Object({ group: t.Optional(plainText(64)) }),
      })
      // † Which of them are refused to the caller for want of a price.
      .get("/user/models/unpriced", ({ actor }) => ok(unpricedForUser(deps, actor)), { access: "user" })
      // † What administrators tell about them at the moment.
      .get(
        "/user/models/notices",
        ({ actor }) => ok(noticesInForce(deps, Object.keys(usableGroups(deps, actor)))),
        { access: "user" },
      )
      // † The caller's models with what they cost where the group's ratio is 1; `group` as above. The playground's list.
      .get("/user/models/priced", ({ actor, query }) => ok(pricedModelsForUser(deps, actor, query.group)), {
        access: "user",
        query: t.Object({ group: t.Optional(plainText(64)) }),
      })
      .get("/user/self/groups", ({ actor }) => ok(groupChoices(deps, actor)), { access: "user" })
      .get("/user/groups", () => ok(groupChoices(deps, undefined)), { open: "public" })
  );
}
