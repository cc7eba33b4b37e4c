// Anthropic Messages: the bundle of its halves.
import type { Dialect } from "../dialect.ts";
import { decodeAnswer, encodeAnswer } from "./answer.ts";
import { decodeRequest } from "./decode-request.ts";
import { decodeStream } from "./decode-stream.ts";
import { encodeRequest } from "./encode-request.ts";
import { encodeStream } from "./encode-stream.ts";
import { decodeFailure, encodeFailure } from "./failure.ts";
import { meterStream } from "./meter.ts";
import { decodeUsage } from "./usage.ts";

export const anthropic = {
  name: "anthropic",
  decodeRequest,
  encodeRequest,
  decodeStream,
  encodeStream,
  decodeAnswer,
  encodeAnswer,
  decodeFailure,
  encodeFailure,
  meterStream,
  decodeUsage,
} as const satisfies Dialect;
