// What everybody may read: the site's status, notices and pages; and the first-run setup.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { endMaintenance } from "../core/site/maintenance.ts";
import { runSetup, setupState } from "../core/site/setup.ts";
import type { SetupImport } from "../core/site/setup.ts";
import { siteStatus } from "../core/site/status.ts";
import { authorOf } from "../http/audit-actor.ts";
import { done, ok } from "../http/envelope.ts";
import { messageText } from "../http/messages.ts";
import { plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Failure } from "../shared/failures.ts";

const setupBody = t.Object({
  username: t.Optional(plainText(255)),
  password: t.Optional(plainText(256)),
  confirmPassword: t.Optional(plainText(256)),
  SelfUseModeEnabled: t.Optional(t.Boolean()),
  DemoSiteEnabled: t.Optional(t.Boolean()),
  time_zone: t.Optional(plainText(64)),
});

export function system(deps: Deps, session: SessionSettings, moving: SetupImport) {
  return new Elysia({ prefix: "/api" })
    .use(policy(session))
    .get(
      "/setup",
      async () => {
        const state = await setupState(deps);
        // Once initialised the other two say nothing, so that strangers learn nothing.
        const data = state.done
          ? { status: true, root_init: false, database_type: "" }
          : { status: false, root_init: state.rootExists, database_type: deps.db.kind };
        return { success: true as const, data };
      },
      { open: "public" },
    )
    .post(
      "/setup",
      async ({ body, language }) => {
        await runSetup(deps, body, language);
        return done(messageText("setup_succeeded", language));
      },
      { open: "public", body: setupBody },
    )
    .post(
      "/setup/import",
      async ({ body }) => {
        await moving.begin(body.source);
        return done();
      },
      { open: "public", body: t.Object({ source: plainText(4000) }) },
    )
    .get("/setup/import", async ({ language }) => ok(await moving.state(language)), { open: "public" })
    .delete(
      "/maintenance",
      async ({ actor, session: current, request, address }) => {
        await endMaintenance(deps.options, authorOf({ actor, session: current, request, address }));
        return done();
      },
      { access: "root" },
    )
    .get("/status", async () => ok(await siteStatus(deps)), {
      open: "public",
    })
    .get(
      "/status/test",
      async () => {
        const answers = await deps.db.ping().catch(() => false);
        if (!answers) throw new Failure("internal", "database_down", { status: 503 });
        return done("Server is running");
      },
      { access: "admin" },
    )
    .get("/notice", () => ok(deps.options.get("Notice")), { open: "public" })
    .get("/about", () => ok(deps.options.get("About")), { open: "public" })
    .get("/home_page_content", () => ok(deps.options.get("HomePageContent")), { open: "public" });
}
