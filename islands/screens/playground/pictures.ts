// Which files can be pictures of a question, and why others cannot.

/** What every provider with eyes reads. */
export const PICTURE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"] as const;

export interface Refusal {
  name: string;
  reason: "type" | "size" | "unreadable";
}

export interface ReadPictures {
  urls: string[];
  refused: Refusal[];
}
