// What the form of registration holds, by the names that the server's refusals use. And what the page knows of the terms.

export interface RegisterValues extends Record<string, unknown> {
  username: string;
  email: string;
  verification_code: string;
  password: string;
  password2: string;
  aff_code: string;
  accept_terms: boolean;
}

/** Addresses of what has to be accepted; empty: there is none. */
export interface RegisterData {
  terms: string;
  privacy: string;
}
