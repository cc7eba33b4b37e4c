// Which schemes the address of a chat link may not have: those that run script in the console's page or read local files.

const REFUSED = ["javascript", "data", "vbscript", "file", "blob", "about"];

/** The scheme of the template that is refused, in small letters; undefined where it may stay. */
export function refusedScheme(template: string): string | undefined {
  // Browsers skip blanks and control characters inside a scheme, so they are skipped here too.
  const compact = template.replaceAll(/[\p{Cc}\p{Cf}\s]/gu, "").toLowerCase();
  return REFUSED.find((scheme) => compact.startsWith(`${scheme}:`));
}
