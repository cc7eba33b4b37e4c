// Replicate on loopback: predictions that are done at once, take a while or fail, files, and what it says to requests
// that it refuses. Refuses foreign tokens with its own problem form.
type Json = Record<string, unknown>;

export const KEY = "r8_token";

export interface ReplicateFake {
  handler: (request: Request) => Promise<Response>;
  /** States of the prediction, one each time it is asked for; the first answers the request. */
  states: Json[];
}

export function createReplicateFake(): ReplicateFake {
  let asked = 0;
  const fake: ReplicateFake = { handler, states: [] };
  const prediction = (): Json => ({
    id: "ufawqhfynnddngldkgtslldrkq",
    model: "black-forest-labs/flux-1.1-pro",
    urls: { get: "https://elsewhere.example/v1/predictions/ufawqhfynnddngldkgtslldrkq" },
    error: null,
    output: null,
    ...fake.states[Math.min(asked++, fake.states.length - 1)],
  });

  async function handler(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (request.headers.get("authorization") !== `Bearer ${KEY}`)
      return Response.json(
        { title: "Unauthenticated", detail: "You did not pass a valid authentication token", status: 401 },
        { status: 401 },
      );
    if (pathname === "/v1/files") {
      const file = (await request.formData()).get("content");
      const size = file instanceof File ? file.size : 0;
      return Response.json({ id: "f-1", urls: { get: `https://files.example/${size}` } }, { status: 201 });
    }
    if (request.method === "GET" && pathname === "/v1/predictions/ufawqhfynnddngldkgtslldrkq")
      return Response.json(prediction());
    const isKnown =
      pathname === "/v1/predictions" || /^\/v1\/models\/[\w-]+\/[\w.-]+\/predictions$/.test(pathname);
    if (request.method !== "POST" || !isKnown)
      return Response.json(
        { detail: "The requested resource could not be found.", status: 404 },
        { status: 404 },
      );
    const { input } = (await request.json()) as { input: Json };
    if (input["prompt"] === "broke")
      return Response.json(
        {
          title: "Insufficient credit",
          detail: "You have insufficient credit to run this model.",
          status: 402,
        },
        { status: 402 },
      );
    asked = 0;
    return Response.json(prediction(), { status: 201 });
  }
  return fake;
}
