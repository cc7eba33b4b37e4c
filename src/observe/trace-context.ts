// Ids of traces as they travel (W3C Trace Context, `traceparent`). Refuses what is not of that form, as if nothing had been sent.

export interface TraceIds {
  traceId: string;
  spanId: string;
  isSampled: boolean;
}

const FORM = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** Undefined for headers that are missing, malformed, or all zeros. */
export function idsOf(traceparent: string | null): TraceIds | undefined {
  if (traceparent === null) return undefined;
  const [, version = "ff", traceId = "", spanId = "", flags = "", more] = FORM.exec(traceparent.trim()) ?? [];
  // Later versions may say more behind it; the first one does not.
  if (version === "ff" || (version === "00" && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function traceparentOf({ traceId, spanId, isSampled }: TraceIds): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

function randomHex(bytes: number): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("hex");
}

export const newTraceId = (): string => randomHex(16);
export const newSpanId = (): string => randomHex(8);
