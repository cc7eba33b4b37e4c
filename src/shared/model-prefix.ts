// The beginning of a model's name, by which lists group models where nobody says who makes them.

/** "gpt" of gpt-4o, "meta-llama" of meta-llama/llama-3: what stands before a slash, else the first letters. */
export function prefixOf(model: string): string {
  const [vendor] = model.split("/", 1);
  if (vendor !== undefined && vendor !== model) return vendor.toLowerCase();
  return (/^\p{L}+/u.exec(model)?.[0] ?? "").toLowerCase();
}
