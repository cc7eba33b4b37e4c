// Pictures of drawings, shown through this server: without a key, because the id is the secret, and it shows one picture.
// Refuses closed networks, and more downloads at a time than memory has room for.
import type { Deps } from "../../core/deps.ts";
import type { Channel } from "../../core/channels/rows.ts";
import { outboundOf } from "../../core/users/outbound.ts";
import { DRAWINGS, SUCCESS } from "../../core/tasks/families.ts";
import type { DrawingRow } from "../../core/tasks/families.ts";
import { anyTask } from "../../core/tasks/store.ts";
import { ERROR_CODE_HEADER } from "../../http/request-id.ts";
import { scrub } from "../../protocol/classify.ts";
import { corsHeaders } from "../wire/cors.ts";
import { taskJson } from "./edge.ts";
import { proxyOf } from "./task-wire.ts";

const TIMEOUT_MS = 60_000;
/** Pictures read at the same time: anybody may ask for them, and each is held in memory in full. */
const MAX_DOWNLOADS = 16;
const MAX_ERROR_BYTES = 1000;
const MAX_IMAGE_BYTES = 50 * 1024 * 1024;

const UNREADABLE = "http_get_image_failed";

function refused(request: Request, error: string, status: number, code: string): Response {
  const answer = taskJson(request, { error }, status);
  answer.headers.set(ERROR_CODE_HEADER, code);
  return answer;
}

/** Answers a request for a picture. Never throws. */
export function createPictures(deps: Deps): (request: Request, id: string) => Promise<Response> {
  let downloads = 0;
  return async (request, id) => {
    const row = await anyTask(deps, DRAWINGS, id);
    if (!row || row.imageUrl === "")
      return refused(request, "midjourney_task_not_found", 400, "task_not_found");
    const channel = deps.routing.channel(row.channelId);
    // What a user pushed is no address of the upstream's: a proxy resolves names by itself, also those of its own network.
    const proxy = channel && !row.imagePushed ? proxyOf(channel) : "";
    if (proxy !== "" && !URL.canParse(proxy))
      return refused(request, "proxy_url_invalid", 400, "channel_proxy_invalid");
    if (downloads >= MAX_DOWNLOADS) {
      const busy = refused(request, UNREADABLE, 503, "media_unreachable");
      busy.headers.set("retry-after", "1");
      return busy;
    }
    downloads++;
    try {
      const answer = await picture(deps, request, row, { channel, proxy });
      return whenThrough(answer, () => downloads--);
    } catch {
      downloads--;
      return refused(request, UNREADABLE, 500, "media_unreachable");
    }
  };
}

/**
 * The same answer; `end` is called once when its bytes are with the client, or it left. Whoever reads so slowly that others would
 * wait for their place has the time of the download itself, then the connection ends.
 */
function whenThrough(answer: Response, end: () => void): Response {
  const reader = answer.body?.getReader();
  if (!reader) {
    end();
    return answer;
  }
  let isOver = false;
  let timer: Timer;
  const over = () => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    end();
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        timer = setTimeout(() => {
          controller.error(new Error("the picture was read too slowly"));
          void reader.cancel();
          over();
        }, TIMEOUT_MS);
      },
      async pull(controller) {
        const { done, value } = await reader.read();
        if (isOver) return;
        if (!done) return controller.enqueue(value);
        controller.close();
        over();
      },
      async cancel(reason) {
        over();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { status: answer.status, headers: answer.headers });
}

async function picture(
  deps: Deps,
  request: Request,
  row: DrawingRow,
  { channel, proxy }: { channel: Channel | undefined; proxy: string },
): Promise<Response> {
  const answer = await outboundOf(deps)(row.imageUrl, {
    maxBytes: MAX_IMAGE_BYTES,
    timeoutMs: TIMEOUT_MS,
    // What a user pushed may not lead into networks that were opened for the upstream's own answers.
    allow: channel && !row.imagePushed ? deps.reach.networks(row.imageUrl, channel) : [],
    proxy,
  });
  if (answer.status !== 200) {
    const text = new TextDecoder().decode(answer.bytes.subarray(0, MAX_ERROR_BYTES));
    return refused(request, scrub(text) || UNREADABLE, answer.status, "media_unreachable");
  }
  const type = answer.headers.get("content-type") ?? "";
  return new Response(answer.bytes, {
    headers: {
      ...corsHeaders(request),
      // Only pictures leave from here: a page under this address would be a page of this site.
      "content-type": /^image\/[\w.+-]+$/.test(type) && !type.includes("svg") ? type : "image/jpeg",
      "x-content-type-options": "nosniff",
      "cache-control": row.status === SUCCESS ? "public, max-age=86400" : "no-store",
    },
  });
}
