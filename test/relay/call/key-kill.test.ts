// A key that its provider refused stays off through a kill: the state stands in its row before another call could need it.
import { expect, test } from "bun:test";
import { answer, refuse, startFakeUpstream } from "../../support/fake-upstream.ts";
import { startOperator } from "../../support/operator.ts";
import { createTestDatabase, DATABASE_KINDS } from "../../support/postgres.ts";
import { startServerProcess } from "../../support/server.ts";
import { HI, MODEL, until } from "../support.ts";

const GOOD = "sk-good-0123456789";
const BAD = "sk-bad-9876543210";

interface KeyJson {
  status: number;
  disabled_reason: string;
  disabled_time: number;
}

test.concurrent.each(DATABASE_KINDS)(
  "on %s a key that went off by itself is off after a kill",
  async (kind) => {
    const upstream = await startFakeUpstream();
    upstream.always(({ headers }) =>
      headers["authorization"] === `Bearer ${BAD}`
        ? refuse(401, { error: { message: "no such key" } })
        : answer("hi"),
    );
    const database = await createTestDatabase(kind);
    const server = await startServerProcess({ DATABASE_URL: database.databaseUrl ?? "" });
    const { key, send } = await startOperator(server, { base_url: upstream.url, models: MODEL });
    const [channel] = (await send("GET", "/api/channel/search")) as { id: number }[];
    await send("PUT", "/api/channel/", { id: channel?.id, key: `${BAD}\n${GOOD}` });
    await send("PUT", "/api/option/", { key: "AutomaticDisableChannelEnabled", value: "true" });
    await send("PUT", "/api/option/", { key: "RetryTimes", value: "1" });
    const chat = async (): Promise<number> => {
      const response = await fetch(`${server.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: MODEL, messages: HI }),
      });
      await response.text();
      return response.status;
    };
    const keys = async () => (await send("GET", `/api/channel/keys/${channel?.id}`)) as KeyJson[];
    expect(await chat()).toBe(200);
    const before = await until(async () => {
      const found = await keys();
      return found[0]?.status === 3 ? found : undefined;
    });
    await server.kill();
    await server.restart();
    expect((await keys()).map(({ status }) => status)).toEqual([3, 1]);
    expect((await keys())[0]).toMatchObject({
      disabled_reason: "no such key",
      disabled_time: before[0]?.disabled_time,
    });
    upstream.reset();
    upstream.always(answer("hi"));
    for (let i = 0; i < 3; i++) expect(await chat()).toBe(200);
    expect(new Set(upstream.requests.map(({ headers }) => headers["authorization"]))).toEqual(
      new Set([`Bearer ${GOOD}`]),
    );
    await server.remove();
    await database.drop();
    upstream.stop();
  },
);
