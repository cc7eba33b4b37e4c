// Switches of a channel for single fields of requests, as `settings` names them; all of them off where nothing is said.

export const CHANNEL_GATES = [
  "allow_service_tier",
  "allow_inference_geo",
  "allow_speed",
  "allow_safety_identifier",
  "allow_include_obfuscation",
  "disable_store",
  "claude_beta_query",
  "session_hint",
  "send_traceparent",
] as const;
export type ChannelGate = (typeof CHANNEL_GATES)[number];
