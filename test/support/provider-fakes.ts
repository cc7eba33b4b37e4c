// Sign-in providers of ours, one server for all: GitHub, Linux DO, Discord and a WeChat server as their documents say, with people and
// codes in the test's hands. Refuses codes twice, foreign redirect addresses, wrong secrets and wrong verifiers.
import { createHash } from "node:crypto";

export interface FakePerson {
  id: number | string;
  login: string;
  [field: string]: unknown;
}

interface Grant {
  person: FakePerson;
  redirectUri: string;
  challenge: string;
}

export interface ProviderFakes {
  url: string;
  /** Whoever is sent to an authorize address signs in there as this one; answers what comes back. */
  signIn(authorizeUrl: string, person: FakePerson): URLSearchParams;
  /** E-mail rows of GitHub, by person id. */
  mails: Map<FakePerson["id"], unknown>;
  /** The next answers, in place of right ones: first of the token call, then of the profile. */
  wrong: { token?: (() => Response | Promise<Response>) | undefined; profile?: (() => Response) | undefined };
  /** Requests so far, as `METHOD path`. */
  asked: string[];
  close(): Promise<void>;
}

export function startProviderFakes(): ProviderFakes {
  const grants = new Map<string, Grant>();
  const tokens = new Map<string, FakePerson>();
  const fakes: Pick<ProviderFakes, "mails" | "wrong" | "asked"> = { mails: new Map(), wrong: {}, asked: [] };
  let serial = 0;

  async function token(request: Request): Promise<Response> {
    const { wrong } = fakes;
    if (wrong.token) return wrong.token();
    const form = new URLSearchParams(await request.text());
    const basic = request.headers.get("authorization");
    const secret = basic?.startsWith("Basic ")
      ? atob(basic.slice(6))
      : `${form.get("client_id")}:${form.get("client_secret")}`;
    // GitHub tells errors with status 200.
    if (secret !== "the-id:the-secret") return Response.json({ error: "incorrect_client_credentials" });
    const grant = grants.get(form.get("code") ?? "");
    grants.delete(form.get("code") ?? "");
    if (!grant) return Response.json({ error: "bad_verification_code" });
    if (grant.redirectUri !== form.get("redirect_uri"))
      return Response.json({ error: "redirect_uri_mismatch" });
    const challenge = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    if (grant.challenge !== "" && grant.challenge !== challenge)
      return Response.json({ error: "invalid_grant" });
    const made = `token-${++serial}`;
    tokens.set(made, grant.person);
    return Response.json({ access_token: made, token_type: "bearer", scope: form.get("scope") ?? "" });
  }

  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      fakes.asked.push(`${request.method} ${pathname}`);
      if (request.headers.get("user-agent") === null) return new Response("agent", { status: 403 });
      if (request.method === "POST") return token(request);
      if (pathname === "/api/wechat/user") {
        const isOurs = request.headers.get("authorization") === "the-token";
        return Response.json({ success: isOurs, message: "", data: searchParams.get("code") });
      }
      const person = tokens.get(request.headers.get("authorization")?.replace("Bearer ", "") ?? "");
      if (!person) return Response.json({ message: "Bad credentials" }, { status: 401 });
      if (pathname === "/api/v3/user/emails") {
        const rows = fakes.mails.get(person.id);
        return rows === undefined
          ? Response.json({ message: "Not Found" }, { status: 404 })
          : Response.json(rows);
      }
      return fakes.wrong.profile ? fakes.wrong.profile() : Response.json(person);
    },
  });
  return {
    ...fakes,
    url: `http://127.0.0.1:${server.port}`,
    signIn(authorizeUrl, person) {
      const { searchParams } = new URL(authorizeUrl);
      if (searchParams.get("client_id") !== "the-id") throw new Error("a foreign client");
      const code = `code-${++serial}`;
      grants.set(code, {
        person,
        redirectUri: searchParams.get("redirect_uri") ?? "",
        challenge: searchParams.get("code_challenge") ?? "",
      });
      return new URLSearchParams({ code, state: searchParams.get("state") ?? "" });
    },
    close: () => server.stop(true),
  };
}
