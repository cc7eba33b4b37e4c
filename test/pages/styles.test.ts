// The own style stays what daisyUI and Tailwind do not give: no rule for a class that no markup names.
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

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
