// Reads files into data URLs, as the chat dialect sends pictures. Fetched with the first file.
// Refuses formats that models do not read, and what would make the call larger than the relay takes.
import { contextOf } from "./conversation.ts";
import type { ReadPictures, Refusal } from "./pictures.ts";
import { PICTURE_TYPES } from "./pictures.ts";
import { bodyOf } from "./request.ts";
import type { Playground } from "./use-playground.ts";

const CHARS_PER_MB = 1024 * 1024;
/** Left for the text that is still to be written. */
const SPARE_CHARS = 64 * 1024;
const USUAL_BODY_MB = 64;

/** What pictures may still take of the largest call that the relay accepts, in characters of its body. */
export function roomOf(
  {
    settings,
    conversation,
    mostBodyMb = USUAL_BODY_MB,
  }: Pick<Playground, "settings" | "conversation" | "mostBodyMb">,
  images: readonly string[],
): number {
  const sent = JSON.stringify(bodyOf(settings, contextOf(conversation))).length;
  const waiting = images.reduce((sum, url) => sum + url.length, 0);
  return mostBodyMb * CHARS_PER_MB - sent - waiting - SPARE_CHARS;
}

/** Base64 makes four characters of three bytes; the rest is "data:image/jpeg;base64,". */
const encodedSize = (file: File): number => Math.ceil(file.size / 3) * 4 + 32;

/** A multiple of three, so that pieces can be put together; few enough to be arguments of a call. */
const PIECE_BYTES = 0x6000;

async function dataUrlOf(file: File): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (bytes.length === 0) throw new Error("empty");
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; at += PIECE_BYTES)
    pieces.push(btoa(String.fromCharCode(...bytes.subarray(at, at + PIECE_BYTES))));
  return `data:${file.type};base64,${pieces.join("")}`;
}

/** `roomChars`: what the body of the call may still grow by. */
export async function readPictures(files: readonly File[], roomChars: number): Promise<ReadPictures> {
  const read: ReadPictures = { urls: [], refused: [] };
  let room = roomChars;
  for (const file of files) {
    const refuse = (reason: Refusal["reason"]) => read.refused.push({ name: file.name, reason });
    if (!(PICTURE_TYPES as readonly string[]).includes(file.type)) refuse("type");
    else if (encodedSize(file) > room) refuse("size");
    else {
      try {
        const url = await dataUrlOf(file);
        read.urls.push(url);
        room -= url.length;
      } catch {
        refuse("unreadable");
      }
    }
  }
  return read;
}
