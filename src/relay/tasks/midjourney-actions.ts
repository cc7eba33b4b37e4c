// What a Midjourney submission means: its action, its price's model name, the task it follows, and the body to send on.
// Refuses what cannot be understood, with the words that clients of this API know.
import type { OptionStore } from "../../core/options/store.ts";
import { TaskError } from "./task-wire.ts";
import type { Json } from "./task-wire.ts";

const REQUEST_ERROR = 4;

/** A refusal of the request; those of this API are all 400. */
export const drawingError = (description: string): TaskError =>
  new TaskError({
    status: 400,
    code: REQUEST_ERROR,
    message: description,
    reason: description.endsWith("task_not_found") ? "task_not_found" : "task_request_invalid",
  });

export interface Drawing {
  /** IMAGINE, UPSCALE, … */
  action: string;
  model: string;
  /** Id of the task that is followed up; "" = a new one. */
  origin: string;
  prompt: string;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

const modelOf = (action: string): string =>
  action === "SWAP_FACE" ? "swap_face" : `mj_${action.toLowerCase()}`;

interface Button {
  action: string;
  index: number;
}

/** The action behind a button's id, such as `MJ::JOB::upsample::2::…`. */
function buttonOf(customId: string): Button {
  const parts = customId.split("::");
  const isJob = parts[1] === "JOB";
  const verb = (isJob ? parts[2] : parts[1]) ?? "";
  const numbered = (): number => {
    const index = Number(parts[3]);
    if (!Number.isInteger(index)) throw drawingError("index_parse_failed");
    return index;
  };
  if (verb.includes("upsample")) return { action: "UPSCALE", index: numbered() };
  if (verb === "low_variation") return { action: "LOW_VARIATION", index: 1 };
  if (verb === "high_variation") return { action: "HIGH_VARIATION", index: 1 };
  if (verb === "variation") return { action: "VARIATION", index: numbered() };
  if (verb.includes("pan")) return { action: "PAN", index: 1 };
  if (verb.includes("reroll")) return { action: "REROLL", index: 1 };
  if (verb === "Outpaint") return { action: "ZOOM", index: 1 };
  if (verb === "CustomZoom") return { action: "CUSTOM_ZOOM", index: 1 };
  if (verb === "Inpaint") return { action: "INPAINT", index: 1 };
  throw drawingError(`unknown_action:${customId}`);
}

/** `<task id> U1`, `V3` or `R`; exactly one blank. */
function simpleChange(content: string): Button & { taskId: string } {
  const [taskId = "", word = "", ...more] = content.split(" ");
  const match = /^(?:([UV])([1-4])|R)$/i.exec(word);
  if (taskId === "" || !match || more.length > 0) throw drawingError("content_parse_failed");
  const letter = match[1]?.toUpperCase();
  const action = letter === "U" ? "UPSCALE" : letter === "V" ? "VARIATION" : "REROLL";
  return { taskId, action, index: Number(match[2] ?? 0) };
}

/** Members that decide what is done, to whose task, and what that costs. */
const DECISIVE = ["taskId", "customId", "action", "content", "index"] as const;
const DECISIVE_KEYS: ReadonlyMap<string, string> = new Map(DECISIVE.map((key) => [keyName(key), key]));

/** By which a member's other spellings are known: readers differ in capitals, and some in underscores. */
function keyName(key: string): string {
  return key.replaceAll("_", "").toUpperCase();
}

/** Throws where another reader could see another task or another action in the body than we do. */
function checkDecisive(body: Json): void {
  for (const key in body) {
    const known = DECISIVE_KEYS.get(keyName(key));
    if (known !== undefined && known !== key) throw drawingError(`unknown_field:${key.slice(0, 40)}`);
  }
  const { taskId } = body;
  if (taskId !== undefined && taskId !== null && typeof taskId !== "string")
    throw drawingError("task_id_must_be_a_string");
}

/** The kind is the last piece of the path: imagine, change, simple-change, action, modal, describe, … */
export function readDrawing(kind: string, body: Json): Drawing {
  checkDecisive(body);
  const made = (action: string, origin = ""): Drawing => ({
    action,
    model: modelOf(action),
    origin,
    prompt: text(body["prompt"]),
  });
  switch (kind) {
    case "imagine":
      if (text(body["prompt"]) === "") throw drawingError("prompt_is_required");
      return made("IMAGINE");
    case "describe":
    case "shorten":
    case "blend":
      return made(kind.toUpperCase());
    case "upload-discord-images":
      return made("UPLOAD");
    case "modal":
      return made("MODAL", text(body["taskId"]));
    case "change": {
      if (text(body["taskId"]) === "") throw drawingError("task_id_is_required");
      const action = text(body["action"]).toUpperCase();
      if (!/^[A-Z_]{1,40}$/.test(action)) throw drawingError("action_is_required");
      // Dialogs are opened by their buttons; by this name they would be a free way to anything.
      if (FREE_ACTIONS.has(action)) throw drawingError(`unknown_action:${action}`);
      if ((action === "UPSCALE" || action === "VARIATION") && typeof body["index"] !== "number")
        throw drawingError("index_is_required");
      return made(action, text(body["taskId"]));
    }
    case "simple-change": {
      if (text(body["content"]) === "") throw drawingError("content_is_required");
      const { action, taskId } = simpleChange(text(body["content"]));
      return made(action, taskId);
    }
    case "action": {
      if (text(body["customId"]) === "") throw drawingError("custom_id_is_required");
      if (text(body["taskId"]) === "") throw drawingError("task_id_is_required");
      return made(buttonOf(text(body["customId"])).action, text(body["taskId"]));
    }
    default:
      throw drawingError("unknown_relay_action");
  }
}

/** Puts the face of one picture on another. */
export function readFaceSwap(body: Json): Drawing {
  checkDecisive(body);
  if (!body["sourceBase64"] || !body["targetBase64"])
    throw drawingError("sour_base64_and_target_base64_is_required");
  return { action: "SWAP_FACE", model: modelOf("SWAP_FACE"), origin: "", prompt: "InsightFace" };
}

const MODES = /\s*--(?:fast|relax|turbo)\b/g;

/**
 * The client's own JSON with the operator's edits; unknown fields stay. It names the task that was looked up for its
 * caller, or none: whoever knows the id of another one's must not reach it.
 */
export function sentDrawing(options: Pick<OptionStore, "get">, body: Json, origin: string): Json {
  const sent = { ...body };
  if (sent["taskId"] !== origin || origin === "") delete sent["taskId"];
  if (!options.get("MjAccountFilterEnabled")) deleteAll(sent, "accountFilter");
  if (!options.get("MjNotifyEnabled")) deleteAll(sent, "notifyHook");
  if (options.get("MjModeClearEnabled") && typeof sent["prompt"] === "string")
    sent["prompt"] = sent["prompt"].replace(MODES, "").trim();
  return sent;
}

/** In every spelling of the member. */
function deleteAll(sent: Json, member: string): void {
  for (const key of Object.keys(sent)) if (keyName(key) === keyName(member)) delete sent[key];
}

/** Modes of speed stand in front of /mj/ and mean something to the client's settings only. */
export function upstreamPath(pathname: string): string {
  const at = pathname.indexOf("/mj/");
  return pathname.includes("/mj-") && at > 0 ? pathname.slice(at) : pathname;
}

/** Submissions that only open a dialog cost nothing; what completes the dialog does. */
export const FREE_ACTIONS: ReadonlySet<string> = new Set(["INPAINT", "CUSTOM_ZOOM"]);
