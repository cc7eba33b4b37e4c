// Controller of /api/custom-oauth-provider: sign-in providers that the operator defines, for root alone.
// Refuses changes by whoever has not proven afresh who they are; a secret goes in and never comes out.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { discover } from "../core/users/providers/discovery.ts";
import {
  addCustomProvider,
  changeCustomProvider,
  listCustomProviders,
  removeCustomProvider,
  showCustomProvider,
} from "../core/users/providers/custom-rows.ts";
import type { CustomProviderInput } from "../core/users/providers/custom-rows.ts";
import { providerLoss } from "../core/users/providers/methods.ts";
import type { WaysInLoss } from "../core/users/providers/methods.ts";
import { requireFreshProof } from "../core/users/step-up.ts";
import { auditActorOf } from "../http/audit-actor.ts";
import { ok } from "../http/envelope.ts";
import { plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

const text = t.Optional(plainText(4000));
const flag = t.Optional(t.Boolean());

const providerBody = t.Object({
  name: text,
  slug: text,
  icon: text,
  enabled: flag,
  kind: t.Optional(t.Union([t.Literal("oauth2"), t.Literal("oidc")])),
  client_id: text,
  /** Empty keeps what is set. */
  client_secret: text,
  issuer: text,
  authorization_endpoint: text,
  token_endpoint: text,
  user_info_endpoint: text,
  scopes: text,
  /** 0: found out, 1: in the body, 2: Basic. */
  auth_style: t.Optional(t.Integer({ minimum: 0, maximum: 2 })),
  user_id_field: text,
  username_field: text,
  display_name_field: text,
  email_field: text,
  email_verified_field: text,
  /** An object; null: everybody. */
  access_policy: t.Optional(t.Unknown()),
  access_denied_message: text,
  pkce: t.Optional(t.Union([t.Literal("auto"), t.Literal("on"), t.Literal("off")])),
  allow_register: flag,
  skip_second_factor: flag,
  link_verified_email: flag,
});

/** How many accounts had only that provider; nothing where none had. */
const lockedIn = (lost: WaysInLoss | undefined) =>
  lost !== undefined && lost.accounts_without_sign_in > 0
    ? { accounts_without_sign_in: lost.accounts_without_sign_in }
    : {};

export function customProviders(deps: Deps, session: SessionSettings) {
  return (
    new Elysia({ prefix: "/api/custom-oauth-provider" })
      .use(policy(session))
      .get("/", async () => ok(await listCustomProviders(deps)), { access: "root" })
      .post(
        "/",
        async ({ body, actor, session: own, address, request }) => {
          await requireFreshProof(deps, { actor, session: own }, "with_factor");
          const by = auditActorOf({ actor, session: own, address, request });
          return ok(await addCustomProvider(deps, body satisfies CustomProviderInput, by));
        },
        { access: "root", body: providerBody },
      )
      // What a server says of itself; nothing is written.
      .post("/discovery", async ({ body }) => ok(await discover(deps, body.issuer)), {
        access: "root",
        body: t.Object({ issuer: plainText(500) }),
      })
      .get("/:id", async ({ params }) => ok(await showCustomProvider(deps, params.id)), {
        access: "root",
      })
      // † What would go with it, told before it is switched off or deleted.
      .get(
        "/:id/ways_in",
        async ({ params, actor }) => {
          await showCustomProvider(deps, params.id);
          return ok(await providerLoss(deps, actor.id, params.id));
        },
        { access: "root" },
      )
      .put(
        "/:id",
        async ({ params, body, actor, session: own, address, request }) => {
          await requireFreshProof(deps, { actor, session: own }, "with_factor");
          const isOff = body.enabled === false;
          const lost = isOff ? await providerLoss(deps, actor.id, params.id) : undefined;
          const by = auditActorOf({ actor, session: own, address, request });
          const changed = await changeCustomProvider(deps, params.id, body satisfies CustomProviderInput, by);
          return { ...ok(changed), ...lockedIn(lost) };
        },
        { access: "root", body: providerBody },
      )
      .delete(
        "/:id",
        async ({ params, actor, session: own, address, request }) => {
          await requireFreshProof(deps, { actor, session: own }, "with_factor");
          const lost = await providerLoss(deps, actor.id, params.id);
          const by = auditActorOf({ actor, session: own, address, request });
          const removed = await removeCustomProvider(deps, params.id, by);
          return { ...ok(removed), ...lockedIn(lost) };
        },
        { access: "root" },
      )
  );
}
