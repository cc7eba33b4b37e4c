// The own style stays what daisyUI and Tailwind do not give: no rule for a class that no markup names.
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { withoutFallbacks } from "../../scripts/css-fallbacks.ts";
import { readManifest } from "../../src/http/assets.ts";

const ROOT = join(import.meta.dir, "../..");

function filesBelow(dir: string, ending: RegExp): string[] {
  return readdirSync(join(ROOT, dir), { recursive: true, encoding: "utf8" })
    .filter((name) => ending.test(name))
    .map((name) => join(ROOT, dir, name));
}

test("every class that the own style names is named by markup", () => {
  const markup = ["islands", "views", "src/pages"]
    .flatMap((dir) => filesBelow(dir, /\.tsx?$/))
    .map((file) => readFileSync(file, "utf8"))
    .join("\n");
  const dead = filesBelow("views", /\.css$/).flatMap((file) => {
    const style = readFileSync(file, "utf8").replaceAll(/\/\*[\s\S]*?\*\//g, "");
    const names = new Set(
      [...style.matchAll(/\.([a-z][a-z0-9-]+)(?=[^{};]*\{)/g)].map((found) => found[1] ?? ""),
    );
    return [...names].filter((name) => !new RegExp(`(?<![\\w-])${name}(?![\\w-])`).test(markup));
  });
  expect(dead).toEqual([]);
});

test("a colour that browsers without color-mix() would get is left out, and nothing else", () => {
  const mixed = "@supports (color:color-mix(in lab, red, red))";
  for (const [before, after] of [
    [`.a{color:red;top:0}${mixed}{.a{color:mix}}.b{}`, ".a{top:0;color:mix}.b{}"],
    // Another element, though its selector ends alike; and a rule in between.
    [`.x .a{color:red}${mixed}{.a{color:mix}}`, ".x .a{color:red}.a{color:mix}"],
    [`.a{color:red}.b{}${mixed}{.a{color:mix}}`, ".a{color:red}.b{}.a{color:mix}"],
    // Within a rule, within another condition, several rules, a text with a semicolon.
    [`.a{color:red;${mixed}{color:mix}}`, ".a{color:red;color:mix}"],
    [`@media print{.a{color:red}${mixed}{.a{color:mix}}}`, "@media print{.a{color:mix}}"],
    [`.a{color:red}${mixed}{.a{color:mix}.b{top:0}}`, ".a{color:red}.a{color:mix}.b{top:0}"],
    [`.a{color:red}${mixed}{.a{content:";color:b"}}`, '.a{color:red}.a{content:";color:b"}'],
    ["@supports (display:grid){.a{top:0}}", "@supports (display:grid){.a{top:0}}"],
  ] as const) {
    expect([before, withoutFallbacks(before)]).toEqual([before, after]);
  }
  const built = readFileSync(join(ROOT, "dist/a", readManifest().css), "utf8");
  expect(built).not.toContain("color-mix(in lab, red, red)");
  expect(built.split("{").length).toBe(built.split("}").length);
  expect(built.split("color-mix(").length).toBeGreaterThan(50);
});
