// What the task log knows of a creative task: the words for its states, and what its data can be played as.
// Refuses addresses that are no web addresses: results come from upstreams.
import type { StatusTone } from "../../ui/badges.tsx";
import type { ListPageData, TaskRow } from "../../lib/wire.ts";

export interface TaskPageData extends ListPageData<TaskRow> {
  isAdmin: boolean;
}

const ACTIONS = new Set(["MUSIC", "LYRICS"]);

export function actionKey(action: string): string {
  return ACTIONS.has(action) ? `task.action.${action}` : "common.unknown";
}

const STATUS: Record<string, [StatusTone, string]> = {
  NOT_START: ["off", "task.status.NOT_START"],
  SUBMITTED: ["attention", "task.status.SUBMITTED"],
  QUEUED: ["attention", "task.status.QUEUED"],
  IN_PROGRESS: ["running", "task.status.IN_PROGRESS"],
  SUCCESS: ["ok", "task.status.SUCCESS"],
  FAILURE: ["broken", "task.status.FAILURE"],
  UNKNOWN: ["off", "task.status.UNKNOWN"],
  "": ["running", "task.status.submitting"],
};

export function statusLabel(status: string): [StatusTone, string] {
  return (Object.hasOwn(STATUS, status) ? STATUS[status] : undefined) ?? ["off", "task.status.UNKNOWN"];
}

/** The values of the status filter. */
export const TASK_STATUSES = Object.keys(STATUS).filter((status) => status !== "");

/** A JSON text becomes its value. */
export function parsedData(data: unknown): unknown {
  if (typeof data !== "string" || data === "") return data ?? undefined;
  try {
    return JSON.parse(data) as unknown;
  } catch {
    return data;
  }
}

export interface Clip {
  title: string;
  audioUrl: string;
  videoUrl: string;
  imageUrl: string;
  tags: string;
  text: string;
}

function webAddress(value: unknown): string {
  return typeof value === "string" && /^https?:\/\//i.test(value) ? value : "";
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Songs and lyrics in the data of a task; empty for anything else. */
export function clipsOf(data: unknown): Clip[] {
  const value = parsedData(data);
  const list = Array.isArray(value) ? value : [value];
  return list.flatMap((each: unknown) => {
    if (each === null || typeof each !== "object") return [];
    const song = each as Record<string, unknown>;
    const metadata = (song.metadata ?? {}) as Record<string, unknown>;
    const clip: Clip = {
      title: textOf(song.title),
      audioUrl: webAddress(song.audio_url),
      videoUrl: webAddress(song.video_url),
      imageUrl: webAddress(song.image_url),
      tags: textOf(metadata.tags ?? song.tags),
      text: textOf(song.text) || textOf(metadata.prompt),
    };
    return clip.audioUrl || clip.videoUrl || clip.text ? [clip] : [];
  });
}
