// A relayed call and the keys of its channel: one bad key never takes the whole channel while another works.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { ChannelStatus } from "../../../src/shared/enums.ts";
import { refuse } from "../../support/fake-upstream.ts";
import type { Script } from "../../support/fake-upstream.ts";
import { startGateway, until } from "../support.ts";
import type { Gateway } from "../support.ts";

let g: Gateway;
let serial = 0;

beforeAll(async () => {
  g = await startGateway();
  await g.setOption("SelfUseModeEnabled", "true");
  await g.setOption("AutomaticDisableChannelEnabled", "true");
  await g.setOption("RetryTimes", "1");
});
afterAll(() => g.close());
beforeEach(() => g.upstream.reset());

async function channel(...keys: string[]): Promise<{ id: number; model: string }> {
  const model = `keyed-${++serial}`;
  // Equal keys are one account, and rest together: each channel has its own.
  const key = keys.map((name) => `${name}.${serial}`).join("\n");
  const id = await g.app.createChannel({ baseUrl: g.upstream.url, models: model, key });
  return { id, model };
}

async function statusOfCall(model: string): Promise<number> {
  const response = await g.chat({ model });
  await response.text();
  return response.status;
}

const keysAsked = (): string[] =>
  g.upstream.requests.map(
    ({ headers }) => /^Bearer ([^.]*)/.exec(String(headers["authorization"]))?.[1] ?? "",
  );
const statusOf = (id: number): number | undefined => g.app.deps.routing.channel(id)?.status;
/** Why each key rests for the model now. */
function reasons(id: number, model: string): string[] {
  const { routing, keyring, clock } = g.app.deps;
  const found = routing.channel(id);
  return (found?.keys ?? []).map((_, index) =>
    found ? (keyring.restOf(found, index, model, clock.monotonicMs())?.reason ?? "") : "",
  );
}

test.each<[string, Script, number]>([
  ["a rejected key", refuse(401), 200],
  // A body's fault is told to the client as it is; the key is known to be bad all the same.
  [
    "a key whose account is empty, told with status 400",
    refuse(400, { error: { message: "Your credit balance is too low" } }),
    400,
  ],
])("%s rests, and the channel goes on with the other", async (_, script, status) => {
  const { id, model } = await channel("bad", "good");
  g.upstream.script(script);
  expect(await statusOfCall(model)).toBe(status);
  expect(await statusOfCall(model)).toBe(200);
  expect(await statusOfCall(model)).toBe(200);
  expect(keysAsked().filter((key) => key === "bad")).toHaveLength(1);
  expect(reasons(id, model)).toEqual(["rejected", ""]);
  expect(statusOf(id)).toBe(ChannelStatus.enabled);
});

test("a rejected key disables no channel whose other key was only asked for patience", async () => {
  const { id, model } = await channel("busy", "bad");
  g.upstream.script(refuse(429), refuse(401));
  expect(await statusOfCall(model)).toBe(502);
  await g.app.deps.ledger.flush();
  expect(reasons(id, model)).toEqual(["limited", "rejected"]);
  expect(statusOf(id)).toBe(ChannelStatus.enabled);
});

test("a channel all of whose keys are rejected is disabled", async () => {
  const { id, model } = await channel("bad", "worse");
  g.upstream.always(refuse(401));
  expect(await statusOfCall(model)).toBe(502);
  expect(keysAsked()).toEqual(["bad", "worse"]);
  await until(() => Promise.resolve(statusOf(id) === ChannelStatus.autoDisabled || undefined));
});
