// The site that a settings file is for: a running server by its address and root's access token, or a data directory that no
// server holds. Both answer alike.
import { applyConfig, planConfig } from "../core/config/apply.ts";
import { exportConfig } from "../core/config/export.ts";
import type { ConfigDeps } from "../core/config/state.ts";
import { configAnswer } from "../http/config-answer.ts";
import type { ConfigAnswer } from "../http/config-answer.ts";
import { Failure } from "../shared/failures.ts";
import { failureText } from "../http/messages.ts";
import type { Exported } from "./config-print.ts";

interface SiteRequest {
  document: unknown;
  variables: Readonly<Record<string, string>>;
  acceptsGuards: boolean;
}

interface SiteApply extends SiteRequest {
  planHash: string | undefined;
  note: string;
}

export interface Site {
  read(): Promise<Exported>;
  plan(request: SiteRequest): Promise<ConfigAnswer>;
  apply(request: SiteApply): Promise<ConfigAnswer>;
  close(): Promise<void>;
}

/** The command ends with this sentence; nothing was changed. */
export class SiteError extends Error {}

export interface Address {
  url: string;
  token: string;
  /** Root's number, which every call names. */
  userId: string;
}

/** Long enough for the largest file on a busy server. */
const TIMEOUT_MS = 120_000;

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export function remoteSite({ url, token, userId }: Address, fetcher: Fetch): Site {
  async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
    let answer: Response;
    try {
      answer = await fetcher(`${url.replace(/\/+$/, "")}${path}`, {
        method,
        // A token is for the address that was named, not for where that one points.
        redirect: "manual",
        signal: AbortSignal.timeout(TIMEOUT_MS),
        headers: {
          authorization: `Bearer ${token}`,
          "new-api-user": userId,
          "accept-language": "en",
          "content-type": "application/json",
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch (error) {
      throw new SiteError(
        `${url} does not answer: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
    const text = await answer.text().catch(() => "");
    const envelope = envelopeOf(text);
    if (envelope?.success === true) return envelope.data as T;
    const said =
      typeof envelope?.message === "string"
        ? envelope.message
        : `HTTP ${answer.status}, which is no answer of Weir's`;
    throw new SiteError(`${url} refused: ${said}`);
  }
  const bodyOf = ({ document, variables, acceptsGuards }: SiteRequest) => ({
    document,
    variables,
    accept_guards: acceptsGuards,
  });
  return {
    read: () => call("GET", "/api/config"),
    plan: (request) => call("POST", "/api/config/plan", bodyOf(request)),
    apply: (request) =>
      call("POST", "/api/config/apply", {
        ...bodyOf(request),
        note: request.note,
        ...(request.planHash === undefined ? {} : { plan_hash: request.planHash }),
      }),
    close: () => Promise.resolve(),
  };
}

function envelopeOf(text: string): { success?: unknown; message?: unknown; data?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Whoever changes a data directory by hand has no account there. */
const AUTHOR = { userId: 0, username: "", kind: "cli" as const };

export function localSite(deps: ConfigDeps, close: () => Promise<void>): Site {
  const told = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      if (error instanceof Failure) throw new SiteError(failureText(error, "en"));
      throw error;
    }
  };
  const requestOf = ({ document, variables, acceptsGuards }: SiteRequest) => ({
    document,
    acceptsGuards,
    variables: new Map(Object.entries(variables)),
  });
  return {
    read: () => exportConfig(deps),
    plan: async (request) => configAnswer(await told(planConfig(deps, requestOf(request))), "en"),
    apply: async (request) =>
      configAnswer(
        await told(
          applyConfig(
            deps,
            { ...requestOf(request), planHash: request.planHash },
            { ...AUTHOR, note: request.note },
          ),
        ),
        "en",
      ),
    close,
  };
}
