// Pictures for a question: read from files into data URLs, as the chat dialect sends them.
// Refuses formats that models do not read, and what would make the call larger than the relay takes.

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

/** Base64 makes four characters of three bytes; the rest is "data:image/jpeg;base64,". */
const encodedSize = (file: File): number => Math.ceil(file.size / 3) * 4 + 32;

function dataUrlOf(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(String(reader.result)));
    reader.addEventListener("error", () => reject(reader.error ?? new Error("unreadable")));
    reader.readAsDataURL(file);
  });
}

/** `roomChars`: what the body of the call may still grow by. */
export async function readPictures(files: readonly File[], roomChars: number): Promise<ReadPictures> {
  const read: ReadPictures = { urls: [], refused: [] };
  let room = roomChars;
  for (const file of files) {
    const refuse = (reason: Refusal["reason"]) => read.refused.push({ name: file.name, reason });
    if (!(PICTURE_TYPES as readonly string[]).includes(file.type)) refuse("type");
    else if (encodedSize(file) > room) refuse("size");
    else {
      try {
        const url = await dataUrlOf(file);
        if (file.size === 0 || !url.startsWith(`data:${file.type};base64,`)) refuse("unreadable");
        else {
          read.urls.push(url);
          room -= url.length;
        }
      } catch {
        refuse("unreadable");
      }
    }
  }
  return read;
}
