// Worker thread that counts tokens with the real tables, so that a long prompt never stalls the event loop.
// Refuses long pieces: one run of characters without a break costs the encoder its square.
import type { TokenReply, TokenRequest } from "./token-count.ts";

declare const self: Worker;

/** Uncut, one long run of Chinese characters kept the encoder busy for minutes. */
const PIECE_CHARS = 256;

interface Encoder {
  countTokens(text: string, options: { disallowedSpecial: Set<string> }): number;
}

const encoders = new Map<string, Promise<Encoder>>();

function encoderOf(name: TokenRequest["encoding"]): Promise<Encoder> {
  let encoder = encoders.get(name);
  if (!encoder) {
    encoder =
      name === "o200k"
        ? (import("gpt-tokenizer/encoding/o200k_base") as Promise<Encoder>)
        : (import("gpt-tokenizer/encoding/cl100k_base") as Promise<Encoder>);
    encoders.set(name, encoder);
  }
  return encoder;
}

/** Texts that look like control tokens are counted as the plain text they are. */
const NO_SPECIALS = { disallowedSpecial: new Set<string>() };

function count(encoder: Encoder, text: string): number {
  let tokens = 0;
  for (let from = 0; from < text.length;) {
    let to = Math.min(from + PIECE_CHARS, text.length);
    const last = text.charCodeAt(to - 1);
    // Never between the halves of one character.
    if (to < text.length && last >= 0xd800 && last <= 0xdbff) to += 1;
    tokens += encoder.countTokens(text.slice(from, to), NO_SPECIALS);
    from = to;
  }
  return tokens;
}

async function answer({ id, encoding, texts }: TokenRequest): Promise<void> {
  try {
    const encoder = await encoderOf(encoding);
    let tokens = 0;
    for (const text of texts) tokens += count(encoder, text);
    self.postMessage({ id, tokens } satisfies TokenReply);
  } catch (error) {
    self.postMessage({ id, tokens: -1, error: String(error) } satisfies TokenReply);
  }
}

self.onmessage = (event: MessageEvent<TokenRequest>) => {
  void answer(event.data);
};
