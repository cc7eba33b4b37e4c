// Forbidden words in what people ask and models answer: where they are looked for, as the options say at the moment.
// Refuses nothing by itself: prompts are refused by what `prompt` throws, answers by the failure that is handed back.
import type { OptionStore } from "../../core/options/store.ts";
import { createWordFilter } from "../../core/kit/word-filter.ts";
import type { WordFilter } from "../../core/kit/word-filter.ts";
import { Failure } from "../../shared/failures.ts";
import type { WholeAnswer } from "./answer.ts";
import type { Call } from "./call.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { answerTexts, canonicalTexts } from "../meter/meter.ts";
import type { OutputScreen } from "../meter/meter.ts";
import { screenerOf } from "./output-screen.ts";

/** Where clients know a refused prompt by another code than the usual one. */
const SCREEN_CODES: Readonly<Partial<Record<Endpoint["name"], string>>> = {
  responses: "check_request_sensitive_error",
  gemini: "check_request_sensitive_error",
  "image-generations": "invalid_image_request",
  "image-edits": "invalid_image_request",
  speech: "invalid_audio_request",
};

export interface Screens {
  /** Looks at each text of a prompt; undefined = prompts are not screened. */
  prompt(endpoint: Endpoint): ((text: string) => void) | undefined;
  /** Looks at the model's words as they come; undefined = they are not screened. */
  output(call: Call): OutputScreen | undefined;
  /** A whole answer with forbidden words is withheld, and paid for: it was generated. */
  whole(call: Call, answer: WholeAnswer): Failure | undefined;
}

export function createScreens(options: Pick<OptionStore, "get" | "onChange">): Screens {
  let filter: WordFilter | undefined;
  options.onChange((key) => {
    if (key === "SensitiveWords") filter = undefined;
  });
  const words = (): WordFilter => (filter ??= createWordFilter(options.get("SensitiveWords")));

  function output(call: Call): OutputScreen | undefined {
    if (!options.get("CheckSensitiveEnabled") || !options.get("CheckSensitiveOnCompletionEnabled"))
      return undefined;
    return screenerOf(words(), call, options.get("StopOnSensitiveEnabled"));
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
    whole(call, answer) {
      const screen = output(call);
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
