// Guarantees that any client reaches any upstream: four SDKs against four providers' recorded answers, through the
// whole gateway, streaming and not, charged by what the provider reported.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { collect } from "../../src/protocol/assemble.ts";
import type { Answer } from "../../src/protocol/assemble.ts";
import type { DialectName } from "../../src/protocol/canonical.ts";
import { DIALECTS } from "../../src/protocol/dialects.ts";
import { completionTokens, promptTokens } from "../../src/shared/usage.ts";
import { createSseReader } from "../../src/relay/wire/framing.ts";
import {
  answerOf,
  answerText,
  halfOf,
  refusalOf,
  streamText,
  UPSTREAMS,
} from "../support/dialect-upstream.ts";
import { SDK_CLIENTS } from "../support/sdk-clients.ts";
import type { Seen } from "../support/sdk-clients.ts";
import { startGateway } from "./support.ts";
import type { Gateway } from "./support.ts";

const NAMES = Object.keys(UPSTREAMS) as DialectName[];

const ids = (prefix: string): string => `${prefix}1`;

function recorded(dialect: DialectName): { whole: Answer; streamed: Answer } {
  const decoder = DIALECTS[dialect].decodeStream({ newId: ids });
  const reader = createSseReader();
  const frames = [...reader.push(new TextEncoder().encode(streamText(dialect))), ...reader.end()];
  const events = frames.flatMap((frame) => decoder.push(frame));
  events.push(...decoder.end());
  const whole = DIALECTS[dialect].decodeAnswer(JSON.parse(answerText(dialect)), { newId: ids });
  return { whole, streamed: collect(events) };
}

function expected(answer: Answer): Seen {
  const of = (kind: string) => answer.blocks.filter((block) => block.kind === kind);
  return {
    text: of("text")
      .map((block) => block.text)
      .join(""),
    calls: of("tool-call").map((block) => [block.name ?? "", JSON.parse(block.text || "{}")]),
    usage: [promptTokens(answer.usage), completionTokens(answer.usage)],
  };
}

for (const upstream of NAMES) {
  const { type, model } = UPSTREAMS[upstream];

  describe(`a ${upstream} upstream`, () => {
    let g: Gateway;
    beforeAll(async () => {
      g = await startGateway({ channel: { type, models: model } });
      await g.setOption("SelfUseModeEnabled", "true");
    });
    afterAll(() => g.close());

    for (const { name, dialect, make } of SDK_CLIENTS) {
      const spoken = dialect === undefined ? {} : { client_dialect: dialect };
      test(`answers ${name} clients, whole, and is paid by its own numbers`, async () => {
        g.upstream.reset();
        g.upstream.always(answerOf(upstream));
        const answer = recorded(upstream).whole;
        const charge = await g.charged(async () =>
          expect(await make(g).whole(model)).toEqual(expected(answer)),
        );
        expect(charge).toMatchObject({
          modelName: model,
          promptTokens: promptTokens(answer.usage),
          completionTokens: completionTokens(answer.usage),
          isStream: false,
          other: { ...spoken, upstream_dialect: upstream },
        });
      });

      test(`answers ${name} clients, streamed, and is paid by its own numbers`, async () => {
        g.upstream.reset();
        g.upstream.always(answerOf(upstream));
        const answer = recorded(upstream).streamed;
        const charge = await g.charged(async () =>
          expect(await make(g).stream(model)).toEqual(expected(answer)),
        );
        expect(charge).toMatchObject({
          promptTokens: promptTokens(answer.usage),
          completionTokens: completionTokens(answer.usage),
          isStream: true,
          other: { ...spoken, upstream_dialect: upstream, end_reason: "completed" },
        });
        // Whole milliseconds: a quick answer's are none. What was not streamed says -1000.
        expect(charge.other["frt"]).toBeGreaterThanOrEqual(0);
      });

      test(`a cut stream is an error for ${name} clients, and what came is paid`, async () => {
        g.upstream.reset();
        g.upstream.script(halfOf(upstream));
        const charge = await g.charged(async () => {
          const failure = await make(g)
            .stream(model)
            .then(
              () => undefined,
              (error: unknown) => error,
            );
          expect(failure).toBeInstanceOf(Error);
        });
        expect(charge.other["end_reason"]).toBe("upstream-cut");
      });

      test(`a refusal reaches ${name} clients as their SDK's own error, unpaid`, async () => {
        g.upstream.reset();
        g.upstream.script(refusalOf(upstream, 422));
        const before = await g.balance();
        const failure = await make(g)
          .whole(model)
          .then(
            () => undefined,
            (error: unknown) => error,
          );
        const { status, statusCode } = failure as { status?: number; statusCode?: number };
        expect(status ?? statusCode).toBe(422);
        expect(String((failure as Error).message)).toContain("upstream says 422");
        expect(await g.balance()).toEqual(before);
      });
    }
  });
}
