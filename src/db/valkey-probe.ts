// Asks a Valkey or Redis once over a socket of its own: the client of the runtime says no more of a wrong password than that
// the connection closed. The protocol is RESP (https://valkey.io/topics/protocol/): commands are lists of counted texts.
// Refuses to wait longer than its time, and to change anything.
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import type { ValkeyAddress } from "./valkey-url.ts";

/** What a server says to one who comes in: its facts, its refusal, or nothing in time. */
export type ProbeAnswer =
  | {
      kind: "answers";
      /** Both are empty where this user may not read them. */
      version: string;
      evictionPolicy: string;
      tookMs: number;
    }
  | { kind: "refuses"; reason: string }
  | { kind: "silent"; reason: string };

const LIMIT_MS = 1500;
/** More than the facts have; who sends more is no such server. */
const MAX_CHARS = 65_536;

function command(...words: string[]): string {
  const counted = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  return `*${words.length}\r\n${counted.join("")}`;
}

/** The first refusal among the replies, without its sign. */
function refusalIn(text: string): string | undefined {
  return /^-([^\r\n]*)/m.exec(text)?.[1];
}

/** A server that is coming up, or has no room for one more connection, is back by itself. */
const PASSING = /^(LOADING|BUSY|MASTERDOWN|TRYAGAIN|ERR max number of clients)/;

function readAnswer(text: string, tookMs: number): ProbeAnswer | undefined {
  if (text !== "" && !/^[+\-$*]/.test(text))
    return { kind: "refuses", reason: "it does not speak the protocol" };
  const refusal = refusalIn(text);
  // Who may not read the facts may run scripts all the same.
  if (refusal?.startsWith("NOPERM")) return { kind: "answers", version: "", evictionPolicy: "", tookMs };
  if (refusal !== undefined) return { kind: PASSING.test(refusal) ? "silent" : "refuses", reason: refusal };
  const version = /^(?:valkey|redis)_version:(\S+)/m.exec(text)?.[1];
  const evictionPolicy = /^maxmemory_policy:(\S+)/m.exec(text)?.[1];
  // Both parts of the facts come in one text, the policy in the second.
  if (version === undefined || evictionPolicy === undefined) return undefined;
  return { kind: "answers", version, evictionPolicy, tookMs };
}

/** Never rejects. */
export function probeValkey(address: ValkeyAddress, limitMs = LIMIT_MS): Promise<ProbeAnswer> {
  const { host, port, isTls, user, password, database } = address;
  const { promise, resolve } = Promise.withResolvers<ProbeAnswer>();
  const socket = isTls ? connectTls({ host, port, servername: host }) : connect({ host, port });
  const timer = setTimeout(() => end({ kind: "silent", reason: "it does not answer" }), limitMs);
  let text = "";
  let sentMs = 0;
  function end(answer: ProbeAnswer): void {
    clearTimeout(timer);
    socket.destroy();
    resolve(answer);
  }
  socket.on(isTls ? "secureConnect" : "connect", () => {
    sentMs = performance.now();
    // A user without a password signs in with an empty one, as the runtime's client does.
    const words =
      user === "" && password === "" ? [] : [command("AUTH", ...(user === "" ? [] : [user]), password)];
    if (database > 0) words.push(command("SELECT", String(database)));
    socket.write([...words, command("INFO", "server"), command("INFO", "memory")].join(""));
  });
  socket.on("data", (bytes: Buffer) => {
    text += bytes.toString("latin1");
    const answer = readAnswer(text, performance.now() - sentMs);
    if (answer) end(answer);
    else if (text.length > MAX_CHARS) end({ kind: "refuses", reason: "it does not speak the protocol" });
  });
  socket.on("error", (error) => end({ kind: "silent", reason: error.message }));
  socket.on("close", () => end({ kind: "silent", reason: "it closed the connection" }));
  return promise;
}
