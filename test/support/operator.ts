// An operator's first steps over the wire: setup, sign-in, one channel, one key.
// Refuses the product's insides: whatever is done here a script outside could do.
import type { ServerProcess } from "./server.ts";

export interface Operator {
  /** A console call as root. Resolves with the envelope's `data`; throws what a refusal says. */
  send(method: "GET" | "POST" | "PUT", path: string, body?: unknown): Promise<unknown>;
  /** An unlimited key of root's, with its `sk-`. */
  key: string;
}

export interface FirstChannel {
  base_url: string;
  models: string;
  /** 1, OpenAI, when absent. */
  type?: number;
}

const ACCOUNT = { username: "root", password: "correct horse" };

/** Sets up a server that has just been made, and gives it its first channel and key. */
export async function startOperator(
  { url }: Pick<ServerProcess, "url">,
  channel: FirstChannel,
): Promise<Operator> {
  const headers: Record<string, string> = { "content-type": "application/json" };

  async function ask(method: string, path: string, body?: unknown) {
    const answer = await fetch(url + path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const told = (await answer.json()) as { success?: boolean; message?: string; data?: unknown };
    if (told.success !== true) throw new Error(`${method} ${path}: ${answer.status} ${told.message}`);
    return { answer, data: told.data };
  }
  const send: Operator["send"] = async (method, path, body) => (await ask(method, path, body)).data;

  await send("POST", "/api/setup", { ...ACCOUNT, confirmPassword: ACCOUNT.password });
  const { answer, data } = await ask("POST", "/api/user/login", ACCOUNT);
  headers["cookie"] = answer.headers
    .getSetCookie()
    .map((each) => each.split(";")[0])
    .join("; ");
  headers["new-api-user"] = String((data as { id: number }).id);
  await send("POST", "/api/channel/", { type: 1, name: "fake", key: "upstream", ...channel });
  const token = await send("POST", "/api/token/", { name: "first", unlimited_quota: true });
  return { send, key: `sk-${(token as { key: string }).key}` };
}
