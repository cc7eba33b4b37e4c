// Media behind addresses, for callers that must fetch them before a base64-only upstream can be asked.
// Refuses to fetch: it only finds the places; relay code fills them through its guard.
import type { AudioPart, CanonicalRequest, DialectName, FilePart, ImagePart, Part } from "./canonical.ts";

export type MediaPart = ImagePart | AudioPart | FilePart;

/** Media parts that `target` can only take inline; replace their `source` by a base64 one before encoding. */
export function mediaToInline(request: CanonicalRequest, target: DialectName): MediaPart[] {
  if (request.dialect === target) return [];
  const found: MediaPart[] = [];
  const visit = (part: Part): void => {
    if (part.type === "tool-result") part.content.forEach(visit);
    else if (part.type === "image" || part.type === "audio" || part.type === "file") {
      if (part.source.kind === "url" && !takesAddress(target, part)) found.push(part);
    }
  };
  for (const message of request.messages) message.parts.forEach(visit);
  return found;
}

function takesAddress(target: DialectName, part: MediaPart): boolean {
  switch (target) {
    case "anthropic":
    case "openai-responses":
      return part.type !== "audio";
    case "openai-chat":
      return part.type === "image";
    case "gemini":
      return false;
  }
}
