// Parts of a server-rendered page (`data-shell="name"`), replaced from a fresh render of the same address.
// Refuses anything but this address and its names: a part that the new page lacks stays as it is.

/** Returns the new page, from which its parts have been taken: those of these names, or all. */
export async function replaceParts(names?: readonly string[]): Promise<Document> {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) throw new Error(String(answer.status));
  // Parsed, not inserted as text: scripts of the answer never run.
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.documentElement.lang = next.documentElement.lang;
  document.title = next.title;
  for (const part of document.querySelectorAll("[data-shell]")) {
    const name = part.getAttribute("data-shell") ?? "";
    if (names && !names.includes(name)) continue;
    const fresh = next.querySelector(`[data-shell="${name}"]`);
    if (fresh) part.replaceWith(document.adoptNode(fresh));
  }
  return next;
}
