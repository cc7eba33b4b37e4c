// The program as `serve` starts it, with signals that throw where nobody catches; uncaught.test.ts sends them.
// Refuses to end by itself.
import { createApp, createServices } from "../../src/app.ts";
import { readEnv } from "../../src/env.ts";
import { serve } from "../../src/serve.ts";

const env = readEnv();
const services = await createServices(env);
const close = services.close;
services.close = async () => {
  await close();
  console.error("settled at the end");
};
await serve(env, services, await createApp(services));
process.on("SIGCONT", () => {
  setImmediate(() => {
    throw Object.assign(new Error("write EPIPE"), { code: "EPIPE" });
  });
});
process.on("SIGUSR2", () => {
  setImmediate(() => {
    throw new TypeError("null is not an object");
  });
});
console.error("ready to throw");
