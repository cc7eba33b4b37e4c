// What an upstream knows a call by: the id in its answer's headers, else that of the answer itself. Bills and the
// provider's support go by it. Refuses anything that is no plain identifier.
const HEADERS = [
  "x-request-id",
  "request-id",
  "x-oneapi-request-id",
  "x-amzn-requestid",
  "apim-request-id",
] as const;
const IDENTIFIER = /^[\w.:/+=-]{1,128}$/;

/** OpenRouter bills by the id of its answers. */
const BILLED_ANSWERS = /^gen-/;

/** `answerId`: the id in the answer's own body. */
export function upstreamIdOf(response: Response, answerId: unknown): string | undefined {
  if (typeof answerId === "string" && BILLED_ANSWERS.test(answerId) && IDENTIFIER.test(answerId))
    return answerId;
  for (const name of HEADERS) {
    const value = response.headers.get(name);
    if (value !== null && IDENTIFIER.test(value)) return value;
  }
  return typeof answerId === "string" && IDENTIFIER.test(answerId) ? answerId : undefined;
}
