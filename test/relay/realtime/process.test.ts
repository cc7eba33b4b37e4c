// Realtime sessions and the end of the process: a kill loses no response that the client heard the end of, a polite
// stop closes every socket first. Refuses clocks: the process is killed on what the client received.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { readEnv } from "../../../src/env.ts";
import { connect, SQLITE_FILE } from "../../../src/db/connect.ts";
import { LogType } from "../../../src/shared/enums.ts";
import { REALTIME_USAGE, responseDone, startFakeRealtime } from "../../support/fake-realtime.ts";
import { lockFile } from "../../support/lock-file.ts";
import { startOperator } from "../../support/operator.ts";
import { startServerProcess } from "../../support/server.ts";
import type { ServerProcess } from "../../support/server.ts";
import { attach, MODEL } from "./support.ts";
import type { SocketClient } from "./support.ts";

async function open(server: ServerProcess, key: string): Promise<SocketClient> {
  const address = `${server.url.replace("http", "ws")}/v1/realtime?model=${MODEL}`;
  const socket = new WebSocket(address, {
    headers: { authorization: `Bearer ${key}` },
  } as unknown as string[]);
  const client = attach(socket as unknown as import("bun").WebSocket);
  await client.nextOf("session.created");
  return client;
}

async function chargedTurns(server: ServerProcess): Promise<string[]> {
  const db = await connect(readEnv({ DATA_DIR: server.dataDir }));
  const { logs } = db.t;
  const rows = await db.orm.select().from(logs);
  await db.close();
  return rows.filter((row) => row.type === LogType.consume).map((row) => row.requestId);
}

test("a killed process has recorded every response whose end was heard; a stopped one says goodbye", async () => {
  const upstream = startFakeRealtime();
  const server = await startServerProcess();
  try {
    const { key } = await startOperator(server, { base_url: upstream.url, models: MODEL });
    let heard = 0;
    for (const turns of [1, 3, 2]) {
      const clients = await Promise.all([open(server, key), open(server, key), open(server, key)]);
      const peers = await Promise.all(clients.map(() => upstream.connections.next()));
      const lock = heard === 0 ? lockFile(join(server.dataDir, SQLITE_FILE)) : undefined;
      for (let turn = 0; turn < turns; turn++) {
        for (const [i, peer] of peers.entries()) {
          peer.say({ type: "response.created", response: { id: `${heard}-${turn}-${i}` } });
          peer.say(responseDone(`${heard}-${turn}-${i}`, REALTIME_USAGE));
        }
        await Promise.all(clients.map((client) => client.nextOf("response.done")));
        heard += clients.length;
      }
      await server.kill();
      await Promise.all(clients.map((client) => client.closed));
      lock?.release();
      const { code, text } = server.audit();
      expect(code).toBe(0);
      // What could not reach the tables is told, and entered by the next start.
      const waiting = Number(/(\d+) accepted entries stand in the journal/.exec(text)?.[1] ?? 0);
      if (lock) expect(waiting).toBeGreaterThanOrEqual(heard);
      await server.restart();
      const recorded = await chargedTurns(server);
      expect(recorded).toHaveLength(heard);
      expect(new Set(recorded).size).toBe(heard);
    }
    const idle = await open(server, key);
    await upstream.connections.next();
    const talking = await open(server, key);
    const peer = await upstream.connections.next();
    peer.say({ type: "response.created", response: { id: "last" } });
    peer.say({ type: "response.text.delta", delta: "bye" });
    await talking.nextOf("response.text.delta");
    const stopped = server.stop();
    expect(await idle.closed).toEqual({ code: 1001, reason: "the gateway is restarting" });
    peer.say(responseDone("last", REALTIME_USAGE));
    await talking.nextOf("response.done");
    expect((await talking.closed).code).toBe(1001);
    await stopped;
    expect(await chargedTurns(server)).toHaveLength(heard + 1);
    expect(server.audit()).toMatchObject({ code: 0 });
  } finally {
    await server.remove();
    upstream.stop();
  }
}, 60_000);
