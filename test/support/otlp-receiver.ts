// A receiver of traces on loopback: takes OTLP as JSON over HTTP, and answers what a test wants.
// Refuses bodies that are no JSON, by answering 400 and remembering why.

interface OtlpValue {
  stringValue?: string;
  intValue?: number | string;
  doubleValue?: number;
  arrayValue?: { values: OtlpValue[] };
}

export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  /** 2 = SERVER, 3 = CLIENT. */
  kind: number;
  startMs: number;
  endMs: number;
  /** 2 = ERROR. */
  status: number;
  attributes: Record<string, unknown>;
  resource: Record<string, unknown>;
}

interface OtlpAttribute {
  key: string;
  value: OtlpValue;
}

interface OtlpBody {
  resourceSpans: {
    resource: { attributes: OtlpAttribute[] };
    scopeSpans: {
      spans: {
        traceId: string;
        spanId: string;
        parentSpanId?: string;
        name: string;
        kind: number;
        startTimeUnixNano: string;
        endTimeUnixNano: string;
        status: { code: number };
        attributes: OtlpAttribute[];
      }[];
    }[];
  }[];
}

function valueOf({ stringValue, intValue, doubleValue, arrayValue }: OtlpValue): unknown {
  if (arrayValue) return arrayValue.values.map(valueOf);
  return stringValue ?? doubleValue ?? Number(intValue);
}

const attributesOf = (list: OtlpAttribute[]): Record<string, unknown> =>
  Object.fromEntries(list.map(({ key, value }) => [key, valueOf(value)]));

function spansOf({ resourceSpans }: OtlpBody): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ parentSpanId, startTimeUnixNano, endTimeUnixNano, status, attributes, ...span }) => ({
        ...span,
        parentSpanId: parentSpanId || undefined,
        startMs: Number(startTimeUnixNano) / 1e6,
        endMs: Number(endTimeUnixNano) / 1e6,
        status: status.code,
        attributes: attributesOf(attributes),
        resource: attributesOf(resource.attributes),
      })),
    ),
  );
}

export interface OtlpReceiver {
  url: string;
  spans: ReceivedSpan[];
  requests: { path: string; headers: Headers; text: string }[];
  problems: string[];
  stop(): void;
}

export function startOtlpReceiver(): OtlpReceiver {
  const received: Omit<OtlpReceiver, "url" | "stop"> = { spans: [], requests: [], problems: [] };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const text = await request.text();
      received.requests.push({ path: new URL(request.url).pathname, headers: request.headers, text });
      try {
        received.spans.push(...spansOf(JSON.parse(text) as OtlpBody));
        return Response.json({ partialSuccess: {} });
      } catch (error) {
        received.problems.push(String(error));
        return new Response(null, { status: 400 });
      }
    },
  });
  return { ...received, url: `http://127.0.0.1:${server.port}`, stop: () => void server.stop(true) };
}
