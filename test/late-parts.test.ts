// What the program loads only when it is used, asked of the program itself: in the test command's binary each of these
// parts is a file of its own, found by name while the server runs.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { AddressInfo } from "node:net";
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { SMTPServer } from "smtp-server";
import { startFakeUpstream } from "./support/fake-upstream.ts";
import { startServerProcess } from "./support/server.ts";
import type { ServerProcess } from "./support/server.ts";

const MODEL = "gpt-4o-mini";
const PASSWORD = "correct horse";

let server: ServerProcess;
const upstream = await startFakeUpstream();
const headers: Record<string, string> = { "content-type": "application/json" };
let authorization = "";

async function send(method: string, path: string, body: unknown): Promise<Response> {
  const answer = await fetch(server.url + path, { method, headers, body: JSON.stringify(body) });
  expect(await answer.clone().json()).toMatchObject({ success: true });
  return answer;
}

beforeAll(async () => {
  server = await startServerProcess();
  await send("POST", "/api/setup", { username: "root", password: PASSWORD, confirmPassword: PASSWORD });
  const login = await send("POST", "/api/user/login", { username: "root", password: PASSWORD });
  headers["cookie"] = (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  headers["new-api-user"] = "1";
  const channel = { type: 1, name: "fake", key: "k", base_url: upstream.url, models: MODEL };
  await send("POST", "/api/channel/", channel);
  const made = await send("POST", "/api/token/", { name: "t", unlimited_quota: true });
  authorization = `Bearer sk-${((await made.json()) as { data: { key: string } }).data.key}`;
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
      headers: { authorization, "content-type": "application/json" },
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
    await send("PUT", "/api/option/", { key, value: String(value) });
  await send("POST", "/api/user/setting/test", {
    notify_type: "email",
    quota_warning_threshold: 1000,
    notification_email: "me@b.example",
  });
  expect(await letter.promise).toEqual(["me@b.example"]);
  await new Promise<void>((closed) => mail.close(closed));
});
