// What a stream's hold lets pass is paid by the count that its charge goes by, wherever the stream ends.
import { expect, test } from "bun:test";
import { DIALECTS } from "../../../src/protocol/dialects.ts";
import { NO_HOLD } from "../../../src/relay/call/hold.ts";
import { createStreamHold } from "../../../src/relay/call/stream-hold.ts";
import { createOutputCounter } from "../../../src/relay/meter/meter.ts";
import type { TokenCounter } from "../../../src/relay/meter/token-count.ts";

/** An encoder to which each byte is a token: four times and more what the estimate says. */
const COUNTER: TokenCounter = {
  count: (texts) => Promise.resolve(texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)),
  isFullFor: () => false,
  close() {},
};

/** Passes so many events of five characters; how many were delivered, what they count, and what is paid. */
async function pass(events: number, word: string, balance: number) {
  const output = createOutputCounter({
    makeMeter: DIALECTS["openai-chat"].meterStream,
    counter: COUNTER,
    model: "gpt-4o-mini",
    countsDeltas: true,
    screen: undefined,
  });
  let left = balance;
  let asked = 0;
  const grow = (more: number): number => {
    asked += 1;
    const given = Math.min(more, left);
    left -= given;
    return given;
  };
  const hold = createStreamHold(
    { grow },
    { ...NO_HOLD, tokens: 500, outputRate: 1, grows: true },
    output,
    () => Promise.resolve(0),
  );
  const data = JSON.stringify({ choices: [{ index: 0, delta: { content: word } }] });
  let delivered = 0;
  while (delivered < events) {
    output.meter.push({ event: "", data });
    if (output.meter.state.textChars > hold.freeChars && !(await hold.cover(output.meter.state.textChars)))
      break;
    delivered += 1;
  }
  return { delivered, asked, counted: delivered * Buffer.byteLength(word), paid: hold.paidTokens };
}

test.each(["!?#;:", "\u{1f9ff}\u{1f9ff}a", "\u0fd0\u0fd1\u0fd2\u0fd3\u0fd4"])(
  "of dear words (%s) no more passes than is paid, wherever the stream ends",
  async (word) => {
    for (let events = 10; events <= 400; events += 15)
      for (const balance of [0, 700, 100_000]) {
        const { delivered, counted, paid } = await pass(events, word, balance);
        expect([events, balance, counted <= paid]).toEqual([events, balance, true]);
        // Nobody is cut short whose balance pays.
        if (counted + Buffer.byteLength(word) <= 500 + balance) expect(delivered).toBe(events);
      }
  },
);
