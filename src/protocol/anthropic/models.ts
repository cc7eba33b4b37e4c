// How model generations want reasoning and sampling to be said; names are the only thing the protocol shows of them.
// Refuses nothing: names it does not know get the older form, which compatible upstreams understand.

export interface ModelTraits {
  /** `thinking.budget_tokens` (to Claude 4.5), or adaptive thinking with `output_config.effort` (since 4.6). */
  style: "budget" | "effort";
  /** temperature, top_p and top_k are accepted (not since Opus 4.7, April 2026). */
  sampling: boolean;
}

const BUDGET_MODELS =
  /claude-(?:instant|[23]\b|[23]-|(?:opus|sonnet|haiku)-4(?:-[0-5])?(?:$|[-@]20\d{6}|-latest|-v\d))/;

export function modelTraits(model: string): ModelTraits {
  if (!model.includes("claude") || BUDGET_MODELS.test(model)) return { style: "budget", sampling: true };
  return { style: "effort", sampling: /claude-(?:opus|sonnet|haiku)-4-6/.test(model) };
}
