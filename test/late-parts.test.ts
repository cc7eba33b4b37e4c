// What the program loads only when it is used, asked of the program itself: in the test command's binary each of these
// parts is a file of its own, found by name while the server runs.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { AddressInfo } from "node:net";
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { SMTPServer } from "smtp-server";
import { startFakeUpstream } from "./support/fake-upstream.ts";
import { startOperator } from "./support/operator.ts";
import type { Operator } from "./support/operator.ts";
import { startServerProcess } from "./support/server.ts";
import type { ServerProcess } from "./support/server.ts";

const MODEL = "gpt-4o-mini";

let server: ServerProcess;
let operator: Operator;
const upstream = await startFakeUpstream();

beforeAll(async () => {
  server = await startServerProcess();
  operator = await startOperator(server, { base_url: upstream.url, models: MODEL });
});
afterAll(async () => {
  await server.remove();
  upstream.stop();
});

test("the token encoder counts, it does not estimate", async () => {
  const text = "Zungenbrecher: der Potsdamer Postkutscher putzt den Potsdamer Postkutschkasten. ".repeat(40);
  const count = async () => {
    const answer = await fetch(`${server.url}/v1/messages/count_tokens`, {
      method: "POST",
      headers: { authorization: `Bearer ${operator.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: MODEL, messages: [{ role: "user", content: text }] }),
    });
    return ((await answer.json()) as { input_tokens: number }).input_tokens;
  };
  // Until its tables are there, the estimate answers in its place.
  const exact = encode(text).length;
  let counted = await count();
  while (Math.abs(counted - exact) > 20) counted = await count();
  expect(counted).toBeGreaterThanOrEqual(exact);
});

test("the list of all calls is made", async () => {
  const answer = await fetch(`${server.url}/openapi.json`);
  const { paths } = (await answer.json()) as { paths: Record<string, unknown> };
  expect(paths).toHaveProperty(["/v1/chat/completions"]);
});

test("a letter is sent", async () => {
  const letter = Promise.withResolvers<string[]>();
  const mail = new SMTPServer({
    disabledCommands: ["STARTTLS"],
    authOptional: true,
    logger: false,
    onData(stream, session, done) {
      stream.resume().on("end", () => {
        letter.resolve(session.envelope.rcptTo.map(({ address }) => address));
        done();
      });
    },
  });
  await new Promise<void>((listening) => mail.listen(0, "127.0.0.1", listening));
  const { port } = mail.server.address() as AddressInfo;
  for (const [key, value] of Object.entries({
    SMTPServer: "127.0.0.1",
    SMTPPort: port,
    SMTPFrom: "a@b.example",
  }))
    await operator.send("PUT", "/api/option/", { key, value: String(value) });
  await operator.send("POST", "/api/user/setting/test", {
    notify_type: "email",
    quota_warning_threshold: 1000,
    notification_email: "me@b.example",
  });
  expect(await letter.promise).toEqual(["me@b.example"]);
  await new Promise<void>((closed) => mail.close(closed));
});
