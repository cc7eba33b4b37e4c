// Calls that could take an account away are refused until its owner has proven afresh who they are (identity.md 5.4). Here it is
// seen, asked for in one dialog (ui/step-up.tsx), and told to api.ts, which then repeats the call.
// Refuses to ask twice at once: calls that are refused together wait for the same answer.
import { signal } from "@preact/signals-react";

/** "password", "2fa", "passkey", or "provider:" and its id. */
export type ProofMethod = string;

export interface ProofQuestion {
  methods: readonly ProofMethod[];
  answer: (isProven: boolean) => void;
}

/** For the dialog. */
export const proofQuestion = signal<ProofQuestion | undefined>(undefined);

let asking: Promise<boolean> | undefined;

function ask(methods: readonly ProofMethod[]): Promise<boolean> {
  asking ??= new Promise<boolean>((resolve) => {
    proofQuestion.value = {
      methods,
      answer: (isProven) => {
        proofQuestion.value = undefined;
        asking = undefined;
        resolve(isProven);
      },
    };
  });
  return asking;
}

/** True when an answer asked for proof and got it: the call may be made again. */
export async function proveAfresh(status: number, body: unknown): Promise<boolean> {
  if (status !== 403 || body === null || typeof body !== "object") return false;
  const { code, data } = body as { code?: unknown; data?: { methods?: unknown } | null };
  if (code !== "verification_required") return false;
  const methods = data?.methods;
  return ask(Array.isArray(methods) ? methods.filter((each) => typeof each === "string") : []);
}
