// Texts of one direction of a realtime turn, for when nobody reports its usage.
// Refuses to keep more of them than an estimate needs.
import { estimateFromLengths } from "../meter/token-count.ts";
import type { TokenCounter } from "../meter/token-count.ts";

/** Text of one turn that is kept for the encoder; what goes beyond is estimated from its length. */
const KEPT_CHARS = 64 * 1024;

/** Texts of one direction: the texts themselves up to a bound, the lengths of what goes beyond. */
export class TextTally {
  #kept: string[] = [];
  #keptChars = 0;
  #chars = 0;
  #bytes = 0;

  add(value: unknown): void {
    if (typeof value !== "string" || value === "") return;
    if (this.#keptChars + value.length <= KEPT_CHARS) {
      this.#kept.push(value);
      this.#keptChars += value.length;
      return;
    }
    this.#chars += value.length;
    this.#bytes += Buffer.byteLength(value);
  }

  get isEmpty(): boolean {
    return this.#keptChars + this.#chars === 0;
  }

  quick(): number {
    return Math.ceil(this.#keptChars / 4) + estimateFromLengths(this.#chars, this.#bytes);
  }

  async exact(counter: TokenCounter, model: string): Promise<number> {
    if (this.isEmpty) return 0;
    const text = this.#kept.join("");
    const counted = text === "" ? 0 : await counter.count([text], model);
    const known = counted ?? estimateFromLengths(text.length, Buffer.byteLength(text));
    return known + estimateFromLengths(this.#chars, this.#bytes);
  }

  clear(): void {
    if (this.#kept.length > 0) this.#kept = [];
    this.#keptChars = this.#chars = this.#bytes = 0;
  }
}
