// What a browser is called by people: its name and its system, read out of what it says of itself.
// Refuses to hand on the text itself: programs and strangers write there what they like.
const MAX_CHARS = 60;

/** `Chrome 131 · Windows`; the empty text where nothing is known. */
export async function deviceName(userAgent: string): Promise<string> {
  if (userAgent.trim() === "") return "";
  // Few calls need it.
  const { default: Bowser } = await import("bowser");
  try {
    const { browser, os } = Bowser.parse(userAgent);
    const major = browser.version?.split(".")[0] ?? "";
    const program = [browser.name ?? "", major].filter((part) => part !== "").join(" ");
    const parts = [program, os.name ?? ""].filter((part) => part !== "");
    // Programs name themselves first, as `curl/8.5` does.
    const text = parts.length > 0 ? parts.join(" · ") : (/^[\w.-]+(?:\/[\w.-]+)?/.exec(userAgent)?.[0] ?? "");
    return text.slice(0, MAX_CHARS);
  } catch {
    return "";
  }
}
