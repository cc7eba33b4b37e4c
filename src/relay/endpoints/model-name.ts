// The model a call is about, as requested: it decides limits, price, channel and log.
// Refuses requests in which two readers could see two models, because one would be priced and the other served.
import { Failure } from "../../shared/failures.ts";
import type { RelayBody } from "../wire/read-body.ts";
import { ambiguousName } from "./once.ts";

const MODEL: ReadonlySet<string> = new Set(["model"]);
const MAX_CHARS = 256;

function ambiguous(): Failure {
  return new Failure("client", "model_ambiguous", { wireCode: "invalid_text_request", param: "model" });
}

/** The body's model, else `fallback` (the address names it on some routes, other endpoints have a default). */
export function requestedModel(body: RelayBody, refusalCode: string, fallback?: string): string {
  const { model } = body.json;
  const name = checkedName(
    model === undefined || model === null || model === "" ? fallback : model,
    refusalCode,
  );
  if (ambiguousName(body, MODEL) !== undefined) throw ambiguous();
  return name;
}

/** A model's name as it may stand in a request or an address. */
export function checkedName(value: unknown, refusalCode: string): string {
  if (value === undefined || value === null || value === "")
    throw new Failure("client", "field_required", {
      params: { field: "model" },
      wireCode: refusalCode,
      param: "model",
    });
  if (typeof value !== "string" || value.length > MAX_CHARS || hasControl(value))
    throw new Failure("client", "invalid_field", {
      params: { field: "model", reason: "must be a name" },
      wireCode: refusalCode,
      param: "model",
    });
  return value;
}

function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) < 0x20) return true;
  return false;
}

/** GPT store models are priced, limited and routed under one name per family. */
export function familyName(model: string): string {
  if (model.startsWith("gpt-4-gizmo")) return "gpt-4-gizmo-*";
  if (model.startsWith("gpt-4o-gizmo")) return "gpt-4o-gizmo-*";
  return model;
}
