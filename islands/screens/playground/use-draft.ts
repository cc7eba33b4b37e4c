// What is being written: the text, its pictures, and why a file did not become one.
import { useState } from "react";
import type { Refusal } from "./pictures.ts";
import type { Draft, Playground } from "./use-playground.ts";

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
      const { readPictures, roomOf } = await import("./read-pictures.ts");
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
