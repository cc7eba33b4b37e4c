// The terms and the privacy notice: whether there are any, and which version of them somebody accepted.
import { createHash } from "node:crypto";
import type { Deps } from "../deps.ts";

/** Of both texts together; empty where the operator has written neither. */
export function termsVersion({ options }: Pick<Deps, "options">): string {
  const texts = [options.get("legal.terms").trim(), options.get("legal.privacy").trim()];
  if (texts.every((text) => text === "")) return "";
  return createHash("sha256").update(JSON.stringify(texts)).digest("hex").slice(0, 16);
}
