// What screen readers hear of an answer while it grows: its finished sentences, some seconds' worth at a time.
// Refuses to speak over what is being read: the region is polite, and is empty when no answer runs.
import { useEffect, useRef, useState } from "react";
import type { Message } from "./conversation.ts";

const PAUSE_MS = 3000;
const END_OF_SENTENCE = /[.!?。！？：:\n](?=\s|$|[^\s\w])/g;

/** Length of the text up to the end of its last finished sentence. */
export function spokenLength(text: string): number {
  let end = 0;
  for (const match of text.matchAll(END_OF_SENTENCE)) end = match.index + match[0].length;
  return end;
}

export function Spoken({ message }: { message: Message | undefined }) {
  const [words, setWords] = useState("");
  const latest = useRef(message);
  latest.current = message;
  const id = message?.id;
  useEffect(() => {
    setWords("");
    if (id === undefined) return undefined;
    let said = 0;
    const timer = setInterval(() => {
      const text = latest.current?.content ?? "";
      const end = said + spokenLength(text.slice(said));
      if (end > said) setWords(text.slice(said, end));
      said = end;
    }, PAUSE_MS);
    return () => clearInterval(timer);
  }, [id]);
  return (
    <div className="sr-only" aria-live="polite" aria-atomic="true">
      {words}
    </div>
  );
}
