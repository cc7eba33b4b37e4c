// What a client is to the suite: a name, a version, what it needs, and cases that throw where the user would be let down.
import type { Installed, Need } from "./install.ts";
import type { Exchange } from "./door.ts";
import type { Recorded } from "./record.ts";
import type { Stage } from "./stage.ts";

export interface Field {
  stage: Stage;
  installed: Installed;
  /** Makes the recording of what the case has just sent; absent when nothing is recorded. */
  record?: (made: Pick<Recorded, "dialect" | "model" | "prompt" | "scenario" | "surface">) => Promise<void>;
}

export interface Case {
  name: string;
  /** Rows of issue 14 that it proves. */
  rows?: string;
  /** Throws what went wrong. */
  run(field: Field): Promise<void>;
}

export interface Client {
  name: string;
  version: string;
  need: Need;
  cases: readonly Case[];
}

/** Fails with what was expected and the end of what was seen. */
export function expectThat(isTrue: boolean, expected: string, seen: string): void {
  if (!isTrue) throw new Error(`${expected}; seen: ${seen.trim().slice(-600)}`);
}

/** A model that no channel has. */
export const UNKNOWN = "no-such-model";

export async function expectCharges({ stage }: Field): Promise<void> {
  const wrong = await stage.wrongCharges();
  expectThat(wrong === undefined, "right charges", wrong ?? "");
}

/** One line a request, with the words of refusals. */
export function traffic(exchanges: readonly Exchange[]): string {
  return exchanges
    .map(
      ({ method, url, status, answer }) =>
        `${method} ${url} ${status}${status >= 400 ? ` ${answer.slice(0, 300)}` : ""}`,
    )
    .join(" | ");
}

/** Nothing but data lines, not even a blank keep-alive: what Google's parsers understand. */
export function expectDataOnly(exchanges: readonly Exchange[]): void {
  for (const { url, answer } of exchanges.filter(({ url: each }) => each.includes("alt=sse"))) {
    const frames = answer.split(/\r?\n\r?\n/).filter((frame) => frame !== "");
    const strange = frames.find((frame) => !frame.startsWith("data: ") || frame.includes("\n:"));
    const isBlank = /(\r?\n){3,}/.test(answer) || /^\s/.test(answer);
    expectThat(strange === undefined && !isBlank, `only data lines in ${url}`, strange ?? answer);
  }
}
