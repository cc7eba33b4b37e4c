// Compiles views/app.css with Tailwind's own command and names it by content.
// Refuses Bun's CSS bundler: it triples the size.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { withoutFallbacks } from "./css-fallbacks.ts";

/** Returns the file's name below dist/a. */
export async function buildStyles(projectDir: string, outDir: string): Promise<string> {
  const workDir = mkdtempSync(join(tmpdir(), "weir-css-"));
  try {
    const output = join(workDir, "app.css");
    const cli = join(projectDir, "node_modules/@tailwindcss/cli/dist/index.mjs");
    const child = Bun.spawn(
      [process.execPath, cli, "-i", join(projectDir, "views/app.css"), "-o", output, "--minify"],
      { cwd: projectDir, stdin: "ignore", stdout: "pipe", stderr: "pipe" },
    );
    const [problems, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
    if (code !== 0) throw new Error(`the styles do not build:\n${problems}`);
    const css = withoutFallbacks(readFileSync(output, "utf8"));
    const hash = Bun.hash(css).toString(36).slice(0, 8);
    const name = `app-${hash}.css`;
    writeFileSync(join(outDir, name), css);
    return name;
  } finally {
    rmSync(workDir, { recursive: true, force: true });
  }
}
