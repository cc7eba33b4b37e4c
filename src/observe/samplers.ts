// Which calls are traced, as OpenTelemetry names it (OTEL_TRACES_SAMPLER); the first is the default.
export const SAMPLERS = [
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
  "always_on",
  "always_off",
  "traceidratio",
] as const;
