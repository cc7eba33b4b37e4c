// What is being written: the text, its pictures, and why a file did not become one.
import { useState } from "react";
import { bodyOf } from "./request.ts";
import { contextOf } from "./conversation.ts";
import type { Refusal } from "./pictures.ts";
import type { Draft, Playground } from "./use-playground.ts";

const CHARS_PER_MB = 1024 * 1024;
/** Left for the text that is still to be written. */
const SPARE_CHARS = 64 * 1024;
const USUAL_BODY_MB = 64;

/** What pictures may still take of the largest call that the relay accepts, in characters of its body. */
function roomOf(
  { settings, conversation, mostBodyMb = USUAL_BODY_MB }: Playground,
  images: readonly string[],
): number {
  const sent = JSON.stringify(bodyOf(settings, contextOf(conversation))).length;
  const waiting = images.reduce((sum, url) => sum + url.length, 0);
  return mostBodyMb * CHARS_PER_MB - sent - waiting - SPARE_CHARS;
}

const NOTHING: Draft = { text: "", images: [] };

export function useDraft(playground: Playground) {
  const [draft, setDraft] = useState<Draft>(NOTHING);
  const [refused, setRefused] = useState<readonly Refusal[]>([]);
  const setText = (text: string) => setDraft((before) => ({ ...before, text }));
  return {
    draft,
    refused,
    setText,
    async addFiles(files: readonly File[]) {
      const { readPictures } = await import("./read-pictures.ts");
      const read = await readPictures(files, roomOf(playground, draft.images));
      setDraft((before) => ({
        ...before,
        images: [...before.images, ...read.urls.filter((url) => !before.images.includes(url))],
      }));
      setRefused(read.refused);
    },
    removeImage: (index: number) => {
      setRefused([]);
      setDraft((before) => ({ ...before, images: before.images.toSpliced(index, 1) }));
    },
    /** Gives what is to be sent, and empties the field. */
    take(): Draft {
      setDraft(NOTHING);
      setRefused([]);
      return { ...draft, text: draft.text.trim() };
    },
  };
}
