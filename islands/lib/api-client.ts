// Eden's client of the route module, in a chunk of its own: api.ts loads it with the first call.
import { treaty } from "@elysiajs/eden/treaty2";
import type { Treaty } from "@elysiajs/eden/treaty2";
import type { Routes } from "../../src/routes.ts";

export interface Connection {
  origin: string;
  /** Looked at with every call: tests replace it. */
  transport: { fetch: (url: string, init?: RequestInit) => Promise<Response> };
  /** Headers of every call. */
  headers: () => Record<string, string>;
}

let client: Treaty.Create<Routes> | undefined;

/** The one client of the page. */
export function connect({ origin, transport, headers }: Connection): Treaty.Create<Routes> {
  return (client ??= treaty<Routes>(origin, {
    parseDate: false,
    fetcher: ((input: RequestInfo | URL, init?: RequestInit) =>
      transport.fetch(input instanceof Request ? input.url : input.toString(), {
        credentials: "same-origin",
        ...init,
      })) as typeof fetch,
    headers: () => headers(),
    // Parsed here as plain JSON: the client would otherwise turn texts that look like dates or numbers into such.
    onResponse: async (response): Promise<unknown> => {
      const text = await response.text();
      try {
        return (JSON.parse(text) as unknown) ?? { success: true };
      } catch {
        return { success: false, message: "", code: response.ok ? "bad_answer" : "" };
      }
    },
  }));
}
