// Traces of calls by OTLP over HTTP, as OpenTelemetry's packages send them: a span for the request, and one below it for each
// attempt at an upstream. Spans are made when a call is over, from what was noted of it; the packages are loaded when somebody
// wants traces. Refuses to hold anything up: what the receiver does not take in time is dropped.
import { SpanKind, SpanStatusCode, trace as traceApi, TraceFlags, ROOT_CONTEXT } from "@opentelemetry/api";
import type { Attributes, Context } from "@opentelemetry/api";
import type { Sampler } from "@opentelemetry/sdk-trace-base";
import { ATTRIBUTE } from "./names.ts";
import type { SAMPLERS } from "./samplers.ts";
import { idsOf, newSpanId, newTraceId } from "./trace-context.ts";

export interface TraceSettings {
  /** OTLP's base address: `/v1/traces` is put behind it. */
  endpoint: string;
  headers: Readonly<Record<string, string>>;
  serviceName: string;
  sampler: (typeof SAMPLERS)[number];
  /** 0 to 1, for the samplers that ask for one. */
  ratio: number;
  /** What was asked and answered goes along. */
  showsContent: boolean;
  version: string;
  /** Name of the node. */
  instance: string;
}

/** One try at an upstream, as its span will tell it. Times are performance.now(). */
interface TracedAttempt {
  spanId: string;
  channel: number;
  provider: string;
  model: string;
  startedMs: number;
  endedMs: number;
  /** Code of what went wrong; "" = nothing did. */
  error: string;
  status: number | undefined;
}

/** A call that is traced, from its first moment on. */
export interface CallTrace {
  readonly traceId: string;
  readonly spanId: string;
  /** Span of the client, where it named one. */
  readonly parentId: string | undefined;
  readonly isSampled: boolean;
  /** Of the attempt that is made or comes next: its upstream may be told. */
  attemptId: string;
  readonly attempts: TracedAttempt[];
}

/** What the request's span tells. Times are performance.now(). */
interface TracedRequest {
  operation: string;
  model: string;
  startedMs: number;
  endedMs: number;
  error: string;
  attributes: Attributes;
}

export interface Traces {
  readonly showsContent: boolean;
  /** `traceparent`: as the client sent it, where it did. */
  begin(traceparent: string | null): CallTrace;
  /** The call is over: its spans leave with the next batch. */
  ended(trace: CallTrace, request: TracedRequest): void;
  /** Sends what waits now. */
  flush(): Promise<void>;
  /** Sends what waits, for two seconds at most. */
  close(): Promise<void>;
}

const QUEUE_SPANS = 2048;
const BATCH_SPANS = 512;
const BATCH_MS = 5000;
const EXPORT_MS = 10_000;
const CLOSE_MS = 2000;
/** Of one value: prompts may be long. */
const MOST_CHARACTERS = 32_768;

type Packages = typeof import("@opentelemetry/sdk-trace-base");

function samplerOf(sdk: Packages, { sampler, ratio }: TraceSettings): Sampler {
  const own = sampler.endsWith("always_off")
    ? new sdk.AlwaysOffSampler()
    : sampler.endsWith("always_on")
      ? new sdk.AlwaysOnSampler()
      : new sdk.TraceIdRatioBasedSampler(ratio);
  return sampler.startsWith("parentbased_") ? new sdk.ParentBasedSampler({ root: own }) : own;
}

/** A parent span, of the client or of ours. */
function below(traceId: string, spanId: string, isSampled: boolean, isRemote: boolean): Context {
  const traceFlags = isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  return traceApi.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote });
}

const wallMs = (steadyMs: number): number => performance.timeOrigin + steadyMs;

/** Everything is passed in: the packages would read OTEL_* variables of their own otherwise. */
export async function createTraces(settings: TraceSettings): Promise<Traces> {
  const [sdk, { OTLPTraceExporter }, { resourceFromAttributes }] = await Promise.all([
    import("@opentelemetry/sdk-trace-base"),
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/resources"),
  ]);
  const sampler = samplerOf(sdk, settings);
  /** Spans get the ids that their upstreams were told before. */
  let next = { traceId: "", spanId: "" };
  const provider = new sdk.BasicTracerProvider({
    resource: resourceFromAttributes({
      [ATTRIBUTE.service]: settings.serviceName,
      [ATTRIBUTE.version]: settings.version,
      [ATTRIBUTE.instance]: settings.instance,
    }),
    // Who is traced was decided when the call began.
    sampler: new sdk.AlwaysOnSampler(),
    idGenerator: { generateTraceId: () => next.traceId, generateSpanId: () => next.spanId },
    spanLimits: { attributeValueLengthLimit: MOST_CHARACTERS, attributeCountLimit: 64 },
    spanProcessors: [
      new sdk.BatchSpanProcessor(
        new OTLPTraceExporter({
          url: `${settings.endpoint.replace(/\/+$/, "")}/v1/traces`,
          headers: { ...settings.headers },
          timeoutMillis: EXPORT_MS,
          concurrencyLimit: 2,
        }),
        {
          maxQueueSize: QUEUE_SPANS,
          maxExportBatchSize: BATCH_SPANS,
          scheduledDelayMillis: BATCH_MS,
          exportTimeoutMillis: EXPORT_MS,
        },
      ),
    ],
  });
  const tracer = provider.getTracer("weir", settings.version);

  function write(
    ids: { traceId: string; spanId: string },
    name: string,
    span: { kind: SpanKind; startedMs: number; endedMs: number; error: string; attributes: Attributes },
    parent: Context,
  ): void {
    next = ids;
    const { kind, attributes, error } = span;
    const made = tracer.startSpan(name, { kind, attributes, startTime: wallMs(span.startedMs) }, parent);
    if (error !== "") {
      made.setAttribute(ATTRIBUTE.error, error);
      made.setStatus({ code: SpanStatusCode.ERROR, message: error });
    }
    made.end(wallMs(span.endedMs));
  }

  function writeAttempt({ traceId, spanId }: CallTrace, operation: string, attempt: TracedAttempt): void {
    const { channel, provider, model, status } = attempt;
    const attributes: Attributes = {
      [ATTRIBUTE.operation]: operation,
      [ATTRIBUTE.provider]: provider,
      [ATTRIBUTE.system]: provider,
      [ATTRIBUTE.requestModel]: model,
      [ATTRIBUTE.channel]: channel,
      ...(status === undefined ? {} : { [ATTRIBUTE.status]: status }),
    };
    const span = { ...attempt, kind: SpanKind.CLIENT, attributes };
    write(
      { traceId, spanId: attempt.spanId },
      `${operation} ${model}`,
      span,
      below(traceId, spanId, true, false),
    );
  }

  return {
    showsContent: settings.showsContent,
    begin(traceparent) {
      const parent = idsOf(traceparent);
      const traceId = parent?.traceId ?? newTraceId();
      const context = parent ? below(traceId, parent.spanId, parent.isSampled, true) : ROOT_CONTEXT;
      const { decision } = sampler.shouldSample(context, traceId, "", SpanKind.SERVER, {}, []);
      return {
        traceId,
        spanId: newSpanId(),
        parentId: parent?.spanId,
        isSampled: decision === sdk.SamplingDecision.RECORD_AND_SAMPLED,
        attemptId: newSpanId(),
        attempts: [],
      };
    },
    ended(trace, { operation, model, startedMs, endedMs, error, attributes }) {
      if (!trace.isSampled) return;
      const { traceId, spanId, parentId } = trace;
      const parent = parentId === undefined ? ROOT_CONTEXT : below(traceId, parentId, true, true);
      const span = { kind: SpanKind.SERVER, startedMs, endedMs, error, attributes };
      write({ traceId, spanId }, `${operation} ${model}`, span, parent);
      for (const attempt of trace.attempts) writeAttempt(trace, operation, attempt);
    },
    flush: () => provider.forceFlush(),
    async close() {
      // Its retries would hold the end of the process up.
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, CLOSE_MS);
      await Promise.race([provider.shutdown().catch(() => undefined), late.promise]);
      clearTimeout(timer);
    },
  };
}
