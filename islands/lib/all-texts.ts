// Every text of a language, fetched once for what the page opens later: a page travels with what it shows at once.
// Refuses to keep a failure: whoever asks next fetches again.
import type { Language } from "../../src/shared/enums.ts";
import { boot } from "./boot.ts";
import { addTexts } from "./i18n.ts";

const requested = new Map<string, Promise<void>>();

/** Resolves when the texts are there; at once where the page came with all of them. Rejects when they cannot be had. */
export function loadAllTexts(
  language: Language = boot.peek().language,
  url: string = boot.peek().allTexts,
): Promise<void> {
  if (url === "") return Promise.resolve();
  const running = requested.get(url) ?? fetchTexts(language, url);
  requested.set(url, running);
  return running;
}

async function fetchTexts(language: Language, url: string): Promise<void> {
  try {
    const answer = await fetch(url);
    if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
    addTexts(language, (await answer.json()) as Record<string, string>);
  } catch (error) {
    requested.delete(url);
    throw error;
  }
}
