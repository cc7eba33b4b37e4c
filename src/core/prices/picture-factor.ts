// What size and quality make of a picture's fixed price (billing reference, section 8).
const SIZE_FACTORS: Readonly<Record<string, number>> = {
  "256x256": 0.4,
  "512x512": 0.45,
  "1024x1024": 1,
  "1024x1792": 2,
  "1792x1024": 2,
};

/**
 * Size times quality of a picture at a fixed price; the number of pictures is
 * callCount. `upstreamModel` is the mapped name.
 */
export function pictureFactor(upstreamModel: string, size = "", quality = ""): number {
  const bySize = Object.hasOwn(SIZE_FACTORS, size) ? (SIZE_FACTORS[size] ?? 1) : 1;
  if (upstreamModel !== "dall-e-3" || quality !== "hd") return bySize;
  return bySize * (bySize === 2 ? 1.5 : 2);
}
