// What the form of registration holds, by the names that the server's refusals use.

import type { CodeValues } from "../../ui/code-fields.tsx";

export interface RegisterValues extends CodeValues {
  username: string;
  password: string;
  password2: string;
  aff_code: string;
  accept_terms: boolean;
}
