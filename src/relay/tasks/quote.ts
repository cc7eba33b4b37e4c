// What a drawing or a song is quoted at: the fixed price of its submission, read as the submission itself would be.
// Refuses bodies as their routes do, in the words of this API.
import type { Deps } from "../../core/deps.ts";
import { emptyUsage } from "../../shared/usage.ts";
import { Failure } from "../../shared/failures.ts";
import type { QuotedSurface } from "../call/quote.ts";
import { taskCallPrice, taskCharge } from "./charge.ts";
import { FREE_ACTIONS, readDrawing, readFaceSwap } from "./midjourney-actions.ts";
import { songModel, songOf } from "./suno-wire.ts";
import { TaskError } from "./task-wire.ts";
import type { Json } from "./task-wire.ts";

/** Behind a mode of speed too. */
const DRAWING = /^(?:\/[^/]+)?\/mj\/(?:submit\/([^/]+)|insight-face\/swap)$/;
const SONG = /^\/suno\/submit\/([^/]+)$/;

interface Submitted {
  model: string;
  isFree: boolean;
}

function read(path: string, body: Json): Submitted | undefined {
  const drawing = DRAWING.exec(path);
  if (drawing) {
    const [, kind] = drawing;
    const { action, model } = kind === undefined ? readFaceSwap(body) : readDrawing(kind, body);
    return { model, isFree: FREE_ACTIONS.has(action) };
  }
  const action = SONG.exec(path)?.[1]?.toUpperCase();
  if (action === undefined) return undefined;
  songOf(action, body);
  return { model: songModel(action), isFree: false };
}

/**
 * Undefined: no task is submitted at that path. Which task it follows is not looked at: that decides who draws, not what it
 * costs. Throws a Failure of kind client for a body that its route refuses.
 */
export function taskQuote(
  deps: Pick<Deps, "prices">,
  address: string,
  body: Json,
): QuotedSurface | undefined {
  const [path = ""] = address.split("?");
  try {
    const submitted = read(path, body);
    return submitted && surfaceOf(deps, submitted);
  } catch (error) {
    if (!(error instanceof TaskError)) throw error;
    throw new Failure("client", error.reason, { status: error.status, text: error.message.trim() });
  }
}

function surfaceOf(deps: Pick<Deps, "prices">, { model, isFree }: Submitted): QuotedSurface {
  return {
    model,
    priceIn: ({ user }, group) => taskCallPrice(deps, { user, group }, model),
    costs({ price, own }) {
      const held = taskCharge(price, isFree).quota;
      return {
        usage: emptyUsage(),
        charge: taskCharge(own, isFree),
        worst: held,
        reserve: held,
        least: held,
      };
    },
  };
}
