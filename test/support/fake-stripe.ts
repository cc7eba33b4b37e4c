// A Stripe on loopback, as far as payments use it: Checkout sessions with idempotency, refunds, and events that the package's
// own helper signs. Written from the provider's public API reference.
import Stripe from "stripe";
import type { Deps } from "../../src/core/deps.ts";

export interface FakeSession {
  id: string;
  object: "checkout.session";
  mode: string;
  url: string;
  client_reference_id: string;
  metadata: Record<string, string>;
  payment_intent: string;
  payment_status: string;
  status: string;
  amount_total: number;
  currency: string;
}

export interface FakeStripe {
  url: string;
  sessions: FakeSession[];
  /** Bodies of the refunds that were asked for. */
  refunds: URLSearchParams[];
  /** HTTP status of the next answers; 200: as usual. */
  status: number;
  /** Waited for before a new session or a refund is answered: it is made, and its maker does not know yet. */
  beforeAnswer: () => Promise<void>;
  stop(): Promise<void>;
}

/** Of webhooks. */
export const STRIPE_SECRET = "whsec_0123456789abcdefghijkl";

/** Switches paying by the fake on, for a site that others reach. */
export async function payByStripe({ options }: Pick<Deps, "options">, { url }: FakeStripe): Promise<void> {
  await options.set("ServerAddress", "https://gate.example");
  await options.set("StripeApiBase", url);
  await options.set("StripeApiSecret", "sk_test_0123456789");
  await options.set("StripeWebhookSecret", STRIPE_SECRET);
}

export function startFakeStripe(): FakeStripe {
  const sessions: FakeSession[] = [];
  const byKey = new Map<string, FakeSession>();
  const refunds: URLSearchParams[] = [];
  const refundIds = new Map<string, string>();
  const stand = { status: 200, beforeAnswer: () => Promise.resolve() };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (stand.status !== 200)
        return Response.json({ error: { type: "api_error", message: "no" } }, { status: stand.status });
      if (pathname.startsWith("/v1/payment_intents/")) {
        const id = pathname.split("/").at(-1) ?? "";
        const paid = sessions.find(({ payment_intent: own }) => own === id);
        return Response.json({ id, object: "payment_intent", metadata: paid?.metadata ?? {} });
      }
      if (request.method === "GET") {
        const session = sessions.find(({ id }) => pathname.endsWith(id));
        return session ? Response.json(session) : Response.json({ error: {} }, { status: 404 });
      }
      const form = new URLSearchParams(await request.text());
      const key = request.headers.get("idempotency-key") ?? "";
      if (pathname === "/v1/refunds") {
        const id = refundIds.get(key) ?? `re_${refunds.length + 1}`;
        if (!refundIds.has(key)) refunds.push(form);
        refundIds.set(key, id);
        await stand.beforeAnswer();
        return Response.json({ id, object: "refund", status: "succeeded" });
      }
      const known = byKey.get(key);
      if (known) return Response.json(known);
      const serial = sessions.length + 1;
      const made: FakeSession = {
        id: `cs_test_${serial}`,
        object: "checkout.session",
        mode: form.get("mode") ?? "",
        url: `https://checkout.example/${serial}`,
        client_reference_id: form.get("client_reference_id") ?? "",
        metadata: { order: form.get("metadata[order]") ?? "", site: form.get("metadata[site]") ?? "" },
        payment_intent: `pi_${serial}`,
        payment_status: "unpaid",
        status: "open",
        amount_total: Number(form.get("line_items[0][price_data][unit_amount]")),
        currency: form.get("line_items[0][price_data][currency]") ?? "",
      };
      sessions.push(made);
      byKey.set(key, made);
      await stand.beforeAnswer();
      return Response.json(made);
    },
  });
  return Object.assign(stand, {
    url: `http://127.0.0.1:${server.port}`,
    sessions,
    refunds,
    stop: () => server.stop(true),
  });
}

let events = 0;

export interface Signing {
  secret: string;
  /** Unix seconds. */
  timestamp: number;
  livemode?: boolean;
  id?: string;
}

/** An event as Stripe sends it: body and header. */
export async function signedEvent(
  type: string,
  object: object,
  { secret, timestamp, livemode = false, id = `evt_${++events}` }: Signing,
): Promise<{ payload: string; header: string }> {
  const payload = JSON.stringify({
    id,
    object: "event",
    api_version: "2026-10-28.endive",
    created: timestamp,
    type,
    livemode,
    data: { object },
  });
  const header = await Stripe.webhooks.generateTestHeaderStringAsync({ payload, secret, timestamp });
  return { payload, header };
}
