// What the form of registration holds, by the names that the server's refusals use.

export interface RegisterValues extends Record<string, unknown> {
  username: string;
  email: string;
  verification_code: string;
  password: string;
  password2: string;
  aff_code: string;
  accept_terms: boolean;
}
