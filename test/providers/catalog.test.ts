// The catalogue as a whole: every type stands, rows and forms agree, and nothing in a row is impossible.
// Refuses to repeat the tables: it checks what must hold for all of them, and a few facts by hand.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { requireServed, routeFor } from "../../src/providers/address.ts";
import { ADAPTERS } from "../../src/providers/adapters.ts";
import { listProviders, providerOf } from "../../src/providers/catalog.ts";
import type { ProviderRow } from "../../src/providers/define.ts";
import {
  isPresetModel,
  listPresetModels,
  modelOwner,
  presetModelsByType,
} from "../../src/providers/models.ts";
import { testCallFor } from "../../src/relay/probe.ts";
import { Failure } from "../../src/shared/failures.ts";
import {
  keyHint,
  offeredProviders,
  PROVIDER_FORMS,
  providerLabel,
  splitsKeysByLine,
} from "../../src/shared/provider-forms.ts";

const NEVER_GIVEN = [28, 29, 30, 32];
const ROOT = join(import.meta.dir, "../..");

function row(type: number): ProviderRow {
  const found = providerOf(type);
  if (!found) throw new Error(`no row ${type}`);
  return found;
}

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof Failure) return error.code;
    throw error;
  }
  return "";
}

test("every type from 1 to 60 has one row and one form, and the four gaps have none", () => {
  const given = Array.from({ length: 60 }, (_, index) => index + 1).filter((id) => !NEVER_GIVEN.includes(id));
  expect(listProviders().map((each) => each.id)).toEqual(given);
  expect(PROVIDER_FORMS.map((each) => each.id)).toEqual(given);
  for (const id of NEVER_GIVEN) expect(providerOf(id)).toBeUndefined();
});

test("every type has a label and a key hint in both languages", () => {
  for (const each of listProviders()) {
    for (const text of [each.label, each.keyHint, ...each.fields.map((field) => field.label)]) {
      expect(text.zh).not.toBe("");
      expect(text.en).not.toBe("");
    }
  }
  expect(providerLabel(8, "zh")).toBe("自定义渠道");
  expect(providerLabel(999, "en")).toBe("#999");
});

test("default addresses are absolute and end without a slash", () => {
  for (const { id, baseUrl } of listProviders()) {
    if (baseUrl !== "") expect([id, /^https?:\/\/[^\s]*[^/]$/.test(baseUrl)]).toEqual([id, true]);
  }
});

test("a served type without a default address asks for one, or has an adapter that makes it", () => {
  for (const each of listProviders()) {
    if (each.baseUrl !== "" || each.status === "retired" || each.status === "later") continue;
    const isAsked = each.fields.some((field) => field.name === "base_url" && field.required === true);
    const routes = Object.values(each.operations);
    const isMade = routes.length > 0 && routes.every((route) => route.adapter !== undefined);
    expect([each.id, isAsked || isMade]).toEqual([each.id, true]);
  }
});

test("a served type serves something: an operation or tasks", () => {
  for (const each of listProviders()) {
    if (each.status === "retired" || each.status === "later") continue;
    const isUseful = Object.keys(each.operations).length > 0 || each.tasks !== undefined;
    expect([each.id, isUseful]).toEqual([each.id, true]);
  }
});

test("a key that an adapter signs is never needed by a route without one", () => {
  for (const each of listProviders()) {
    if (each.auth.kind !== "adapter") continue;
    for (const route of Object.values(each.operations)) {
      expect([each.id, route.adapter !== undefined]).toEqual([each.id, true]);
    }
  }
});

test("every adapter that a served row names is there, and none is there for nothing", () => {
  const named = listProviders()
    .filter((each) => each.status !== "later" && each.status !== "retired")
    .flatMap((each) => Object.values(each.operations).flatMap(({ adapter }) => adapter ?? []));
  expect([...new Set(named)].toSorted()).toEqual(Object.keys(ADAPTERS).toSorted());
});

test("templates use only names that are known", () => {
  const known = new Set(["base", "path", "tail", "query", "model", "other", "version"]);
  for (const each of listProviders()) {
    for (const route of Object.values(each.operations)) {
      const templates = [route.url, route.streamUrl ?? "", ...(route.variants ?? []).map(({ url }) => url)];
      for (const [, name] of templates.join(" ").matchAll(/\{(\w+)\}/g)) {
        expect([each.id, known.has(name ?? "")]).toEqual([each.id, true]);
      }
    }
  }
});

test("a retired provider and one that is not served yet are refused by name, and another channel may be tried", () => {
  expect(codeOf(() => requireServed(row(11)))).toBe("provider_retired");
  expect(codeOf(() => requireServed(row(50)))).toBe("provider_unserved");
  expect(codeOf(() => requireServed(row(1)))).toBe("");
  for (const language of ["zh", "en"]) {
    const texts = JSON.parse(readFileSync(join(ROOT, `locales/${language}/failure.json`), "utf8")) as Record<
      string,
      string
    >;
    for (const code of ["provider_retired", "provider_unserved", "provider_base_url", "channel_key_unusable"])
      expect([code, texts[code] ?? ""]).not.toEqual([code, ""]);
    expect(texts["provider_retired"]).toContain("{{name}}");
  }
});

test("a conversation finds a native route first, else one to convert to, and other operations never do", () => {
  expect(routeFor(row(1), "responses", "gpt-4o")?.operation).toBe("responses");
  expect(routeFor(row(1), "messages", "gpt-4o")?.operation).toBe("chat");
  expect(routeFor(row(14), "chat", "claude-3")?.route.dialect).toBe("anthropic");
  expect(routeFor(row(24), "chat", "gemini-2.0-flash")?.operation).toBe("gemini");
  expect(routeFor(row(60), "gemini", "gemini-2.0-flash")?.operation).toBe("gemini");
  expect(routeFor(row(38), "chat", "jina-clip-v1")).toBeUndefined();
  expect(routeFor(row(43), "embeddings", "deepseek-chat")).toBeUndefined();
});

test("the model decides where a type speaks several dialects", () => {
  expect(routeFor(row(41), "chat", "claude-3-opus-20240229")?.operation).toBe("messages");
  expect(routeFor(row(41), "chat", "gemini-1.5-pro")?.operation).toBe("gemini");
  expect(routeFor(row(41), "chat", "meta/llama3-405b-instruct-maas")?.operation).toBe("chat");
  expect(routeFor(row(41), "chat", "gpt-4o")).toBeUndefined();
  expect(routeFor(row(24), "image-generations", "gemini-1.5-pro")).toBeUndefined();
  expect(routeFor(row(44), "embeddings", "m3e-base")).toBeDefined();
});

test("only the documented types are asked for stream usage", () => {
  const asking = listProviders().filter((each) => each.asksForStreamUsage);
  expect(asking.map((each) => each.id)).toEqual([1, 3, 4, 14, 24, 33, 39, 43, 45, 46, 48]);
});

test("owners: the maker comes before resellers, unknown models belong to custom", () => {
  expect(modelOwner("gpt-4o")).toBe("openai");
  expect(modelOwner("claude-3-opus-20240229")).toBe("claude");
  expect(modelOwner("gemini-1.5-pro")).toBe("google gemini");
  expect(modelOwner("qwen-plus")).toBe("ali");
  expect(modelOwner("moonshot-v1-8k")).toBe("moonshot");
  expect(modelOwner("mj_imagine")).toBe("midjourney");
  expect(modelOwner("toString")).toBe("custom");
  expect(isPresetModel("toString")).toBe(false);
});

test("the list of preset models has every name once, and types keep their own lists", () => {
  const names = listPresetModels().map((each) => each.id);
  expect(new Set(names).size).toBe(names.length);
  const byType = presetModelsByType();
  expect(byType["37"]).toBeNull();
  expect(byType["36"]).toEqual(["suno_music", "suno_lyrics"]);
  for (const list of Object.values(byType)) for (const name of list ?? []) expect(names).toContain(name);
  // The upload task is routed under the first name; the second is the one consoles have offered.
  expect(byType["2"]).toContain("mj_upload");
  expect(byType["2"]).toContain("mj_uploads");
});

test("the editor's data is light, and offers neither retired nor unserved types", () => {
  expect(Bun.file(join(ROOT, "src/shared/provider-forms.ts")).size).toBeLessThan(20_000);
  const offered = offeredProviders().map((each) => each.id);
  expect(offered).not.toContain(11);
  expect(offered).not.toContain(58);
  expect(offered).toContain(60);
  expect(new Set(offered).size).toBe(offered.length);
});

test("special fields and key formats stand where the specification names them", () => {
  for (const type of [3, 17, 18, 21, 39, 41, 49]) {
    expect([type, row(type).fields.some((field) => field.name === "other")]).toEqual([type, true]);
  }
  for (const type of [3, 8, 22, 36]) {
    expect([type, row(type).fields.some((field) => field.name === "base_url")]).toEqual([type, true]);
  }
  expect(row(18).fields[0]?.defaultValue).toBe("v2.1");
  for (const type of [15, 18, 22, 23, 33]) expect(keyHint(type)).not.toEqual(keyHint(6));
  expect(splitsKeysByLine(41)).toBe(false);
  expect(splitsKeysByLine(1)).toBe(true);
});

test("every type is tested on an operation that it serves, with each model that it presets", () => {
  for (const each of listProviders()) {
    if (each.status === "retired" || each.status === "later" || each.tasks !== undefined) continue;
    // Sound is not tested: it would have to be paid for, or be brought along.
    const models = each.presetModels.filter(
      (model) => !/tts|speech|whisper|audio|realtime|moderation/.test(model),
    );
    for (const model of [...models, each.id === 56 ? "owner/any" : ""]) {
      if (model === "") continue;
      const { operation } = testCallFor(model, each.id);
      expect([each.id, model, operation, routeFor(each, operation, model) !== undefined]).toEqual([
        each.id,
        model,
        operation,
        true,
      ]);
    }
  }
  expect(testCallFor("owner/any", 56).operation).toBe("image-generations");
  expect(testCallFor("gpt-4o", 1).operation).toBe("chat");
});
