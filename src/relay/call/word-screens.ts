// Forbidden words in prompts and answers: where they are looked for, as the options say at the moment.
import type { OptionStore } from "../../core/options/store.ts";
import { createWordFilter } from "../../core/kit/word-filter.ts";
import type { WordFilter } from "../../core/kit/word-filter.ts";
import { Failure } from "../../shared/failures.ts";
import type { FullAnswer } from "./answer.ts";
import type { Call } from "./call.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { answerTexts, canonicalTexts } from "../meter/meter.ts";
import type { OutputScreen } from "../meter/meter.ts";

/** Where clients know a refused prompt by another code than the usual one. */
const SCREEN_CODES: Readonly<Partial<Record<Endpoint["name"], string>>> = {
  responses: "check_request_sensitive_error",
  gemini: "check_request_sensitive_error",
  "image-generations": "invalid_image_request",
  "image-edits": "invalid_image_request",
  speech: "invalid_audio_request",
};

export interface WordScreens {
  /** Looks at each text of a prompt; undefined = prompts are not screened. */
  prompt(endpoint: Endpoint): ((text: string) => void) | undefined;
  /** Looks at the model's words as they come; undefined = they are not screened. */
  output(call: Call): OutputScreen | undefined;
  /** A full answer with forbidden words is withheld, and paid for: it was generated. */
  answer(answer: FullAnswer): Failure | undefined;
}

export function createWordScreens(options: Pick<OptionStore, "get" | "onChange">): WordScreens {
  let filter: WordFilter | undefined;
  options.onChange((key) => {
    if (key === "SensitiveWords") filter = undefined;
  });
  const words = (): WordFilter => (filter ??= createWordFilter(options.get("SensitiveWords")));

  function output(call: Call): OutputScreen | undefined {
    if (!options.get("CheckSensitiveEnabled") || !options.get("CheckSensitiveOnCompletionEnabled"))
      return undefined;
    return screenOf(words(), call, options.get("StopOnSensitiveEnabled"));
  }

  return {
    output,
    prompt(endpoint) {
      if (!endpoint.isScreened) return undefined;
      if (!options.get("CheckSensitiveEnabled") || !options.get("CheckSensitiveOnPromptEnabled"))
        return undefined;
      const found = words();
      const wireCode = SCREEN_CODES[endpoint.name];
      return (text) => {
        if (found.find(text) !== undefined)
          throw new Failure("client", "sensitive_words_detected", wireCode === undefined ? {} : { wireCode });
      };
    },
    answer(answer) {
      const screen = output(answer.call);
      if (!screen) return undefined;
      const texts = answer.canonical ? canonicalTexts(answer.canonical) : answerTexts(answer.json);
      for (const text of texts) {
        const failure = screen(text);
        if (failure) return failure;
      }
      return undefined;
    },
  };
}

const hits = new WeakSet<Call>();

/** Whether the screen of this call has met a forbidden word. */
export function hasForbiddenOutput(call: Call): boolean {
  return hits.has(call);
}

/**
 * Looks at an answer piece by piece: a word may be cut over any number of them, and no more of the text is kept than the
 * longest word needs. `stops`: a hit ends the answer; otherwise it is only noted in the log.
 */
function screenOf(words: WordFilter, call: Call, stops: boolean): OutputScreen {
  let rest = "";
  return (delta) => {
    if (hits.has(call)) return undefined;
    const text = rest + delta;
    if (words.find(text) === undefined) {
      rest = text.slice(-words.longest);
      return undefined;
    }
    hits.add(call);
    return stops ? new Failure("client", "sensitive_words_detected") : undefined;
  };
}
