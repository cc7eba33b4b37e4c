// Foreign conversations made fit for a dialect with strict turns: neighbours of one role become one message, scattered
// thinking becomes whole blocks. A request in its own dialect is never sent through here.
import type { Message, Part, Role, ThinkingPart } from "./canonical.ts";

/** Joins neighbouring messages whose roles count as one; `side` maps roles to the upstream's, null is never joined. */
export function mergeTurns(messages: readonly Message[], side: (role: Role) => string | null): Message[] {
  const out: Message[] = [];
  for (const message of messages) {
    const last = out.at(-1);
    const here = side(message.role);
    if (last && here !== null && side(last.role) === here && last.name === message.name) {
      last.parts = [...last.parts, ...message.parts];
      delete last.bare;
      if (last.role === "tool") last.role = message.role;
    } else out.push({ ...message, parts: [...message.parts] });
  }
  return out;
}

/**
 * Puts the results of calls directly behind the turn that made them, as chat completions wants them: what stands among
 * them (a picture that one of them holds is a message of its own there) comes behind the last. Calls of one turn are
 * joined already.
 */
export function resultsFirst(messages: readonly Message[]): Message[] {
  const out: Message[] = [];
  /** The first message with results since the last turn of the model's, and what came before it. */
  let first: Message | undefined;
  let before: Message[] = [];
  let isAnswered = false;
  for (const message of messages) {
    if (message.role === "assistant") {
      out.push(...before, message);
      before = [];
      first = undefined;
      isAnswered = message.parts.some((part) => part.type === "tool-call");
      continue;
    }
    const results = isAnswered ? message.parts.filter((part) => part.type === "tool-result") : [];
    if (results.length === 0) {
      (isAnswered && !first ? before : out).push(message);
    } else if (first) {
      const others = message.parts.filter((part) => part.type !== "tool-result");
      const end = first.parts.findLastIndex((part) => part.type === "tool-result") + 1;
      first.parts.splice(end, 0, ...results);
      if (others.length > 0) out.push({ ...message, parts: others });
    } else {
      first = { ...message, parts: [...message.parts] };
      out.push(first, ...before);
      before = [];
    }
  }
  return [...out, ...before];
}

/** Separates system text from the conversation, both in order. */
export function splitSystem(messages: readonly Message[]): { system: Message[]; turns: Message[] } {
  const system: Message[] = [];
  const turns: Message[] = [];
  for (const message of messages) {
    (message.role === "system" || message.role === "developer" ? system : turns).push(message);
  }
  return { system, turns };
}

/**
 * Streams give thinking in pieces with the signature on the last one: neighbours are joined up to each signature. Google's
 * proof in an empty piece is another matter: it belongs to the call behind it.
 */
export function mergeThinking(parts: readonly Part[]): Part[] {
  const out: Part[] = [];
  for (const part of parts) {
    const last = out.at(-1);
    const ofCall = part.type === "thinking" && part.text === "" && part.signature?.dialect === "gemini";
    if (
      part.type === "thinking" &&
      last?.type === "thinking" &&
      !last.signature &&
      !part.redacted &&
      !ofCall
    ) {
      const joined: ThinkingPart = { ...last, ...part, text: last.text + part.text };
      out[out.length - 1] = joined;
    } else out.push(part);
  }
  return out;
}

/** Plain text of system messages, for dialects or fields that take a string. */
export function systemText(system: readonly Message[]): string {
  return system
    .flatMap((message) => message.parts)
    .flatMap((part) => (part.type === "text" ? [part.text] : []))
    .join("\n\n");
}
