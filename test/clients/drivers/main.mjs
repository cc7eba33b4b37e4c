// What every Node driver shares: runs the named tasks of a surface and prints what its user would read, one line a task.

/** The question, and the one tool with its answer. */
export const QUESTION = "What is the weather in Ghent?";
export const TOOL = {
  name: "weather",
  description: "Tells the weather of a city.",
  schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
export const WEATHER = "rain";

/** Surfaces by name: each makes a client from the gateway's address and key, with a function for every task. */
export async function main(surfaces) {
  const [surface, model, task] = process.argv.slice(2);
  const client = surfaces[surface](process.env.WEIR_URL, process.env.WEIR_KEY);
  const tasks = task === "basics" ? ["text", "stream", "loop"].filter((each) => client[each]) : [task];
  try {
    for (const each of tasks) console.log(`${each}: ${String(await client[each](model)).trim()}`);
  } catch (error) {
    const cause = error.lastError ?? error;
    console.log(`error: ${cause.status ?? cause.statusCode ?? cause.code} ${cause.message}`);
    console.error(cause.stack);
    process.exit(3);
  }
}
