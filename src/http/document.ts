// The OpenAPI document at /openapi.json: every call of the console and the relay, made by src/openapi at the first request.
// Refuses pages and files a place in it; its usual viewer is loaded from elsewhere, which this product never does.
import { Elysia } from "elysia";
import type { AnyElysia } from "elysia";
import { checkedBy } from "./session.ts";

export const DOCUMENT_PATH = "/openapi.json";

interface Settings {
  version: string;
  /** The operator's address of this server as it is set now; "" = none. */
  serverAddress: () => string;
}

/** `app` is asked when somebody wants the document: it lists routes that are mounted after this plugin, too. */
export function openapiDocument(app: () => AnyElysia, { version, serverAddress }: Settings) {
  let made: { address: string; text: string } | undefined;
  return new Elysia().get(
    DOCUMENT_PATH,
    async () => {
      const address = serverAddress();
      if (made?.address !== address) {
        // Loaded with the first request for it: few servers ever get one.
        const [{ buildDocument }, codes] = await Promise.all([
          import("../openapi/build.ts"),
          import("./error-codes.ts"),
        ]);
        const names = codes.errorCodes("relay").map(({ code }) => code);
        const errorCodes = { table: codes.errorCodesMarkdown(), names };
        const document = buildDocument(app(), { version, serverAddress: address, errorCodes });
        made = { address, text: JSON.stringify(document) };
      }
      return new Response(made.text, {
        headers: {
          "content-type": "application/json;charset=utf-8",
          "cache-control": "no-cache",
          "x-content-type-options": "nosniff",
        },
      });
    },
    checkedBy("nobody: list of routes"),
  );
}
