// What deploy/ holds for many nodes, as far as that goes without an engine that runs it: the files parse, name what exists, agree
// with the image and with each other, and leave a draining node the time that it needs.
import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { RedisClient } from "bun";
import ipaddr from "ipaddr.js";
import { EnvError, readEnv } from "../src/env.ts";
import { PROJECT_DIR } from "../scripts/build.ts";
import { imageSettings } from "../scripts/image.ts";
import { ensureRedis } from "../scripts/install-redis.ts";
import { startTestApp } from "./support/app.ts";
import { freePort } from "./support/ports.ts";

const DEPLOY_DIR = join(PROJECT_DIR, "deploy");
const KUBERNETES_DIR = join(DEPLOY_DIR, "kubernetes");
const image = imageSettings(readFileSync(join(DEPLOY_DIR, "Dockerfile"), "utf8"));
/** What the end of a drain takes at most: last words are told, what is settled is recorded (README, `DRAIN_SECONDS`). */
const RECORD_SECONDS = 25;

interface Probe {
  httpGet: { path: string; port: string };
  periodSeconds: number;
  failureThreshold: number;
}

interface Container {
  env: { name: string; value: string }[];
  envFrom: { configMapRef: { name: string } }[];
  ports: { name: string; containerPort: number }[];
  startupProbe: Probe;
  readinessProbe: Probe;
  livenessProbe: Probe;
  lifecycle: { preStop: { exec: { command: string[] } } };
  securityContext: object;
  volumeMounts: { name: string; mountPath: string }[];
}

interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string };
  data?: Record<string, string>;
  stringData?: Record<string, string>;
  spec: {
    serviceName?: string;
    replicas?: number;
    clusterIP?: string;
    maxUnavailable?: number;
    selector: Record<string, unknown>;
    podSelector?: { matchLabels: Record<string, string> };
    ports?: { port: number; targetPort: string }[];
    updateStrategy?: object;
    volumeClaimTemplates?: { metadata: { name: string } }[];
    template?: {
      metadata: { labels: Record<string, string> };
      spec: {
        terminationGracePeriodSeconds: number;
        securityContext: Record<string, unknown>;
        containers: Container[];
        volumes: { name: string; secret?: { secretName: string } }[];
      };
    };
  };
}

function manifestsOf(file: string): Manifest[] {
  const parsed = Bun.YAML.parse(readFileSync(file, "utf8")) as Manifest | Manifest[];
  return Array.isArray(parsed) ? parsed : [parsed];
}

const applied = readdirSync(KUBERNETES_DIR)
  .filter((name) => name.endsWith(".yaml"))
  .flatMap((name) => manifestsOf(join(KUBERNETES_DIR, name)));
const secret = manifestsOf(join(KUBERNETES_DIR, "secret.yaml.example"))[0];
const ingress = readFileSync(join(KUBERNETES_DIR, "ingress.yaml.example"), "utf8");

function one(kind: string, name = "weir"): Manifest {
  const found = applied.filter((manifest) => manifest.kind === kind && manifest.metadata.name === name);
  expect(found).toHaveLength(1);
  return found[0] as Manifest;
}

const set = one("StatefulSet");
const pod = set.spec.template as NonNullable<Manifest["spec"]["template"]>;
const container = pod.spec.containers[0] as Container;

/** Good values of what secrets hold, as files below a directory. */
function withSecrets<T>(values: Record<string, string>, action: (dir: string) => T): T {
  const dir = mkdtempSync(join(tmpdir(), "weir-deploy-"));
  try {
    for (const [name, value] of Object.entries(values)) writeFileSync(join(dir, name), value);
    return action(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const GOOD_SECRETS = {
  database_url: "postgres://weir:word@postgres:5432/weir",
  redis_url: "redis://:word@valkey:6379",
  encryption_key: "k".repeat(44),
  session_secret: "s".repeat(44),
  metrics_token: "m".repeat(44),
};

/** Reads a process's settings as src/env.ts does, secrets out of `dir`; also which names it has asked for. */
function settingsOf(environment: Record<string, string>, dir: string) {
  const asked = new Set<string>();
  const moved = Object.entries(environment).map(([name, value]): [string, string] => [
    name,
    name.endsWith("_FILE") ? join(dir, basename(value)) : value,
  ]);
  const source = new Proxy<Record<string, string>>(Object.fromEntries(moved), {
    get(target, name) {
      asked.add(String(name));
      return target[String(name)];
    },
  });
  const env = readEnv(source);
  return { env, unknown: Object.keys(environment).filter((name) => !asked.has(name)) };
}

function podEnvironment(): Record<string, string> {
  const fromMaps = container.envFrom.map(
    ({ configMapRef }) => one("ConfigMap", configMapRef.name).data ?? {},
  );
  return Object.assign(
    {},
    image.env,
    ...fromMaps,
    Object.fromEntries(container.env.map(({ name, value }) => [name, value])),
  ) as Record<string, string>;
}

test("every manifest is one, in no namespace, and belongs to the Pods of the one StatefulSet", () => {
  for (const { apiVersion, kind, metadata } of [...applied, ...(secret ? [secret] : [])]) {
    expect(apiVersion).toMatch(/^([a-z0-9.]+\/)?v1$/);
    expect(kind).not.toBe("");
    expect(metadata.namespace).toBeUndefined();
  }
  const { labels } = pod.metadata;
  for (const name of ["weir", "weir-nodes"]) {
    const { spec } = one("Service", name);
    expect(spec.selector).toEqual(labels);
    for (const { port, targetPort } of spec.ports ?? []) {
      expect(String(port)).toBe(image.env["PORT"] ?? "");
      expect(container.ports.map((given) => given.name)).toContain(targetPort);
    }
  }
  expect(set.spec.selector).toEqual({ matchLabels: labels });
  expect(one("PodDisruptionBudget").spec.selector).toEqual({ matchLabels: labels });
  expect(one("NetworkPolicy").spec.podSelector).toEqual({ matchLabels: labels });
  // Each node has a name of its own, and is emptied, and replaced, alone.
  expect(set.spec.serviceName).toBe(one("Service", "weir-nodes").metadata.name);
  expect(one("Service", "weir-nodes").spec.clusterIP).toBe("None");
  expect(set.spec.replicas).toBeGreaterThan(1);
  expect(one("PodDisruptionBudget").spec.maxUnavailable).toBe(1);
  expect(set.spec.updateStrategy).toEqual({ type: "RollingUpdate" });
});

test("a Pod runs as the image's user on a root that it cannot write, with a volume of its own for the journal", () => {
  expect(pod.spec.securityContext).toMatchObject({
    runAsNonRoot: true,
    runAsUser: image.user,
    runAsGroup: image.group,
    fsGroup: image.group,
  });
  expect(container.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  });
  expect(container.ports.map(({ containerPort }) => String(containerPort))).toEqual([
    image.env["PORT"] ?? "",
  ]);
  const mount = container.volumeMounts.find(({ mountPath }) => mountPath === image.env["DATA_DIR"]);
  expect(set.spec.volumeClaimTemplates?.map(({ metadata }) => metadata.name)).toEqual([mount?.name ?? ""]);
});

test("a Pod's settings are settings of Weir, and its secrets are those of the example", () => {
  const environment = podEnvironment();
  const { env, unknown } = withSecrets(GOOD_SECRETS, (dir) => settingsOf(environment, dir));
  expect(unknown).toEqual([]);
  expect(env.databaseUrl).toBe(GOOD_SECRETS.database_url);
  expect(env.valkey?.host).toBe("valkey");
  expect(env.drainDelaySeconds).toBeGreaterThan(0);
  const volume = pod.spec.volumes.find((given) => given.secret);
  expect(volume?.secret?.secretName).toBe(secret?.metadata.name ?? "");
  const mount = container.volumeMounts.find(({ name }) => name === volume?.name)?.mountPath ?? "";
  for (const [name, value] of Object.entries(environment)) {
    if (!name.endsWith("_FILE")) continue;
    expect(value).toBe(join(mount, basename(value)));
    expect(Object.keys(secret?.stringData ?? {})).toContain(basename(value));
  }
});

test("settings that stand there as comments are settings, too", () => {
  const text = readFileSync(join(KUBERNETES_DIR, "config-map.yaml"), "utf8");
  const named = [...text.matchAll(/^\s+# ([A-Z_]{4,}): (\S+)$/gm)].map(([, name = "", value = ""]) => [
    name,
    value,
  ]);
  expect(named.length).toBeGreaterThan(0);
  const environment = { DATABASE_URL: GOOD_SECRETS.database_url, ...Object.fromEntries(named) };
  expect(settingsOf(environment, "").unknown).toEqual([]);
});

test("the example of the secret is none that a site could start with", () => {
  const refused = () => withSecrets(secret?.stringData ?? {}, (dir) => settingsOf(podEnvironment(), dir));
  expect(refused).toThrow(EnvError);
  expect(refused).toThrow("at least 16 characters");
});

test("a draining Pod has the time that the drain may take, and a starting one what it may wait for", () => {
  const { env } = withSecrets(GOOD_SECRETS, (dir) => settingsOf(podEnvironment(), dir));
  const [program, seconds] = container.lifecycle.preStop.exec.command;
  expect(program).toBe("/bin/sleep");
  expect(pod.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(
    Number(seconds) + env.drainDelaySeconds + env.drainSeconds + RECORD_SECONDS,
  );
  const { startupProbe, readinessProbe, livenessProbe } = container;
  expect(startupProbe.periodSeconds * startupProbe.failureThreshold).toBeGreaterThanOrEqual(
    env.databaseWaitSeconds + 60,
  );
  // Whoever asks /readyz has noticed before the port closes.
  expect(readinessProbe.periodSeconds * readinessProbe.failureThreshold).toBeLessThanOrEqual(
    env.drainDelaySeconds,
  );
  // Slow is not dead: a node that is busy for half a minute stays.
  expect(livenessProbe.periodSeconds * livenessProbe.failureThreshold).toBeGreaterThanOrEqual(30);
});

interface Service {
  environment?: Record<string, string>;
  secrets?: string[];
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test: string[] };
  volumes?: string[];
  networks?: string[] | { inside: { ipv4_address: string } };
  command?: string[];
  user?: string;
  read_only?: boolean;
  stop_grace_period?: string;
}

const wide = Bun.YAML.parse(readFileSync(join(DEPLOY_DIR, "compose-wide.yaml"), "utf8")) as {
  services: Record<string, Service>;
  volumes: Record<string, null>;
  secrets: Record<string, { file: string }>;
  networks: Record<string, { ipam: { config: { subnet: string; ip_range: string }[] } }>;
};
const caddyfile = readFileSync(join(DEPLOY_DIR, "Caddyfile.wide"), "utf8");

test("two nodes of the wide compose file differ in their journal's volume alone, and have the time to drain", () => {
  const { "weir-1": first, "weir-2": second, front, postgres, valkey } = wide.services;
  const volumes = [first?.volumes, second?.volumes].map((list) => list?.join());
  expect(volumes).toEqual([`weir-1-data:${image.env["DATA_DIR"]}`, `weir-2-data:${image.env["DATA_DIR"]}`]);
  expect({ ...first, volumes }).toEqual({ ...second, volumes });
  const { env, unknown } = withSecrets(GOOD_SECRETS, (dir) => settingsOf(first?.environment ?? {}, dir));
  expect(unknown).toEqual([]);
  expect([env.databaseUrl, env.valkey?.url]).toEqual([GOOD_SECRETS.database_url, GOOD_SECRETS.redis_url]);
  expect(parseInt(first?.stop_grace_period ?? "", 10)).toBeGreaterThanOrEqual(
    env.drainDelaySeconds + env.drainSeconds + RECORD_SECONDS,
  );
  // Whose word counts is the front's, and nobody else's.
  const address = Array.isArray(front?.networks) ? undefined : front?.networks?.inside.ipv4_address;
  expect(env.trustedProxies).toEqual([address ?? ""]);
  for (const needed of ["postgres", "valkey"])
    expect(first?.depends_on?.[needed]).toEqual({ condition: "service_healthy" });
  expect(postgres?.healthcheck).toBeDefined();
  expect(valkey?.healthcheck).toBeDefined();
  for (const service of [first, front, valkey]) expect(service?.read_only).toBe(true);
});

test("secrets and volumes of the wide compose file exist, and no password stands in it", () => {
  const named = Object.values(wide.services).flatMap(({ secrets = [] }) => secrets);
  expect(new Set(named)).toEqual(new Set(Object.keys(wide.secrets)));
  const text = readFileSync(join(DEPLOY_DIR, "compose-wide.yaml"), "utf8");
  for (const { secrets = [] } of Object.values(wide.services))
    for (const name of secrets) {
      expect(wide.secrets[name]?.file).toBe(`../secrets/${name}`);
      // The lines at the top make each of them.
      expect(text).toMatch(new RegExp(`^#.*\\b${name}\\b`, "m"));
    }
  const used = Object.values(wide.services).flatMap(({ volumes = [] }) =>
    volumes.map((volume) => volume.split(":")[0] ?? "").filter((name) => !name.startsWith(".")),
  );
  expect(new Set(used)).toEqual(new Set(Object.keys(wide.volumes)));
  expect(text).not.toMatch(/PASSWORD: |:\/\/[^\s%]*:[^%\s]*@/);
});

test("no container is given the front's address, which is the one that is believed", () => {
  const { subnet, ip_range: given } = wide.networks["inside"]?.ipam.config[0] ?? {};
  const front = wide.services["front"]?.networks;
  const address = Array.isArray(front) ? "" : (front?.inside.ipv4_address ?? "");
  const isWithin = (range = "") => ipaddr.parse(address).match(ipaddr.parseCIDR(range));
  expect([isWithin(subnet), isWithin(given)]).toEqual([true, false]);
});

test("secrets that the wide compose file has made in the checkout are in no commit", () => {
  expect(readFileSync(join(DEPLOY_DIR, "..", ".gitignore"), "utf8").split("\n")).toContain("/secrets/");
});

test("the front asks both nodes whether they are ready, and gives nothing that was begun to the other one", () => {
  const port = image.env["PORT"] ?? "";
  expect(caddyfile).toContain(`reverse_proxy weir-1:${port} weir-2:${port} {`);
  expect(caddyfile).toMatch(/^\s*health_uri \/readyz$/m);
  const asked = Number(/^\s*health_interval (\d+)s$/m.exec(caddyfile)?.[1]);
  expect(asked).toBeLessThan(Number(wide.services["weir-1"]?.environment?.["DRAIN_DELAY_SECONDS"]));
  const settings = caddyfile.replace(/^\s*#.*$/gm, "");
  expect(settings).not.toMatch(/lb_try_duration|lb_retries|lb_retry_match/);
  expect(ingress).toContain('proxy-next-upstream: "off"');
  expect(wide.services["front"]?.volumes).toContain("./Caddyfile.wide:/etc/caddy/Caddyfile:ro");
});

test("the probes of all these files are routes, and answer", async () => {
  const { startupProbe, readinessProbe, livenessProbe } = container;
  const paths = [startupProbe, readinessProbe, livenessProbe].map(({ httpGet }) => httpGet.path);
  const app = await startTestApp();
  try {
    for (const path of new Set([...paths, "/readyz"]))
      expect((await fetch(`${app.url}${path}`)).status).toBe(200);
  } finally {
    await app.close();
  }
  for (const { httpGet } of [startupProbe, readinessProbe, livenessProbe])
    expect(container.ports.map(({ name }) => name)).toContain(httpGet.port);
});

test("the line that starts Valkey gives it the password, no disk, and a policy that forgets no limit", async () => {
  const dir = mkdtempSync(join(tmpdir(), "weir-deploy-"));
  const password = "pass-word";
  mkdirSync(join(dir, "data"));
  writeFileSync(join(dir, "valkey_password"), password);
  const port = freePort();
  const line = (wide.services["valkey"]?.command?.[0] ?? "")
    .replaceAll("$$", "$")
    .replaceAll("/run/secrets/", `${dir}/`)
    .replaceAll("/data/", `${dir}/data/`)
    .replace("exec valkey-server", `exec ${ensureRedis()}`);
  const child = Bun.spawn(["/bin/sh", "-c", `${line} --port ${port} --bind 127.0.0.1`], {
    cwd: dir,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  });
  const client = new RedisClient(`redis://:${password}@127.0.0.1:${port}`);
  try {
    const settings: Record<string, string> = {};
    for (const name of ["maxmemory-policy", "maxmemory", "save", "appendonly", "requirepass"])
      Object.assign(settings, await client.send("CONFIG", ["GET", name]));
    expect(settings).toEqual({
      "maxmemory-policy": "noeviction",
      maxmemory: String(256 * 1024 ** 2),
      save: "",
      appendonly: "no",
      requirepass: password,
    });
  } finally {
    client.close();
    child.kill();
    await child.exited;
    rmSync(dir, { recursive: true, force: true });
  }
});
