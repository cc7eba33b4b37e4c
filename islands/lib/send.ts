// A button of the server's markup that calls the API, fetched with the first press: few people ever end a maintenance.
import { readBoot } from "./boot.ts";

/** Of a dialog that asks again: sends what the button names, then shows the page anew, or what was refused. */
export async function sendFrom(button: HTMLElement): Promise<void> {
  const [method = "", path = ""] = (button.dataset.send ?? "").split(" ");
  const id = readBoot(document)?.user?.id;
  let said = button.dataset.failed ?? "";
  button.toggleAttribute("disabled", true);
  try {
    const answer = await fetch(path, { method, headers: { "New-Api-User": String(id) } });
    const { success, message } = (await answer.json()) as { success?: boolean; message?: string };
    if (success) return location.reload();
    said = message || said;
  } catch {
    // No answer, or none that can be read.
  }
  button.toggleAttribute("disabled", false);
  const place = button.closest("dialog")?.querySelector("[data-said]");
  if (place) place.textContent = said;
}
