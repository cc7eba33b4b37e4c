// Controller of what root may see beside the options: a text as pages would show it, whether a newer release is out,
// and whether a letter arrives.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { sendTestLetter } from "../core/users/test-letter.ts";
import { createVersionCheck } from "../core/site/version-check.ts";
import { ok } from "../http/envelope.ts";
import { previewContent } from "../http/operator-content.ts";
import { plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

const previewBody = t.Object({
  key: t.Union([t.Literal("Notice"), t.Literal("HomePageContent"), t.Literal("About"), t.Literal("Footer")]),
  value: plainText(4_000_000),
});

export function optionPreviews(deps: Deps, session: SessionSettings) {
  const versions = createVersionCheck(deps);
  return (
    new Elysia({ prefix: "/api/option" })
      .use(policy(session))
      // † What is known of newer releases; asking for it waits for nobody outside.
      .get("/version", () => ok(versions.state()), { access: "root" })
      .post("/version", async () => ok(await versions.look()), { access: "root" })
      // † What pages would show of a text before it is saved, and what they would leave out.
      .post("/preview", ({ body }) => ok(previewContent(body.value, body.key === "Footer")), {
        access: "root",
        body: previewBody,
      })
      // † A letter by what is saved, to the given address or root's own.
      .post(
        "/letter",
        async ({ body, actor, language }) =>
          ok({ address: await sendTestLetter(deps, actor, body.to, language) }),
        { access: "root", body: t.Object({ to: t.Optional(plainText(320)) }) },
      )
  );
}
