// The container image and its compose file, as far as that goes without a container engine: the file system is put together and
// run in a chroot as its user; what the files name exists.
import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assemble, cannotRun, checkImage, imageSettings } from "../scripts/image.ts";
import { PROJECT_DIR } from "../scripts/build.ts";
import { freePort } from "./support/ports.ts";
import { program } from "./support/server.ts";

const dockerfile = readFileSync(join(PROJECT_DIR, "deploy/Dockerfile"), "utf8");
const settings = imageSettings(dockerfile);

test("the image has a numeric user that is not root, a health check of its own, and runs so", async () => {
  expect(settings).toEqual({
    user: 65532,
    group: 65532,
    env: { DATA_DIR: "/data", HOST: "0.0.0.0", PORT: "3000" },
    entrypoint: ["/usr/local/bin/weir"],
    health: ["/usr/local/bin/weir", "health"],
  });
  const dir = mkdtempSync(join(tmpdir(), "weir-image-"));
  try {
    assemble(program()[0] ?? "", dir, settings);
    expect(statSync(join(dir, "data")).mode & 0o777).toBe(0o700);
    expect(statSync(join(dir, "etc/ssl/certs/ca-certificates.crt")).size).toBeGreaterThan(10_000);
    // Where it cannot be run the reason is known, and nothing more is claimed.
    const reason = cannotRun();
    if (reason === undefined)
      expect(await checkImage(dir, settings, freePort())).toContain("health check succeeds");
    else expect(reason).toMatch(/root|Linux|mounting/);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}, 60_000);

test("what the image is built from is let through to the builder", () => {
  const ignored = readFileSync(join(PROJECT_DIR, "deploy/Dockerfile.dockerignore"), "utf8").split("\n");
  const copied = [...dockerfile.matchAll(/^COPY (?!--)(.*) \S+$/gm)].flatMap(([, names = ""]) =>
    names.split(" "),
  );
  const needed = [
    ...copied.filter((name) => name !== "."),
    "src",
    "islands",
    "views",
    "drizzle",
    "locales",
    "scripts",
    "NOTICE",
  ];
  for (const name of needed) {
    expect(existsSync(join(PROJECT_DIR, name))).toBe(true);
    expect(ignored).toContain(`!${name}`);
  }
});

interface Compose {
  services: Record<
    string,
    {
      environment?: Record<string, string>;
      secrets?: string[];
      depends_on?: object;
      healthcheck?: object;
      read_only?: boolean;
    }
  >;
  secrets: Record<string, { file: string }>;
}

test("the compose file names variables and secrets that exist, and waits for a database that answers", () => {
  const text = readFileSync(join(PROJECT_DIR, "deploy/compose.yaml"), "utf8");
  const { services, secrets } = Bun.YAML.parse(text) as Compose;
  const readme = readFileSync(join(PROJECT_DIR, "README.md"), "utf8");
  const { weir, postgres } = services;
  for (const name of Object.keys(weir?.environment ?? {})) expect(readme).toContain(`\`${name}\``);
  for (const { secrets: named = [], environment = {} } of Object.values(services)) {
    for (const name of named) expect(Object.keys(secrets)).toContain(name);
    for (const value of Object.values(environment))
      if (value.startsWith("/run/secrets/")) expect(named).toContain(value.slice("/run/secrets/".length));
  }
  expect(weir).toMatchObject({ read_only: true, depends_on: { postgres: { condition: "service_healthy" } } });
  expect(postgres?.healthcheck).toBeDefined();
  // No password in the file itself.
  expect(text).not.toMatch(/PASSWORD: |:\/\/weir:[^%]/);
});
