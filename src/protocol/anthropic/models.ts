// How model generations want reasoning to be said; names are the only thing the protocol shows of them.
// Names it does not know get the older form, which compatible upstreams understand.

export interface ModelTraits {
  /** `thinking.budget_tokens` (to Claude 4.5), or adaptive thinking with `output_config.effort` (since 4.6). */
  style: "budget" | "effort";
  /** It thinks at all (since Claude 3.7). */
  thinks: boolean;
}

/** Claude to 4.5, and its dated names. */
export const BUDGET_MODELS =
  /claude-(?:instant|[23]\b|[23]-|(?:opus|sonnet|haiku)-4(?:-[0-5])?(?:$|[-@]20\d{6}|-latest|-v\d))/;

const WITHOUT_THOUGHTS = /claude-(?:instant|2|3-(?:haiku|opus|sonnet|5-))/;

export function modelTraits(model: string): ModelTraits {
  const thinks = !WITHOUT_THOUGHTS.test(model);
  if (!model.includes("claude") || BUDGET_MODELS.test(model)) return { style: "budget", thinks };
  return { style: "effort", thinks };
}
