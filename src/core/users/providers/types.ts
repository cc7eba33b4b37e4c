// What a sign-in provider is to the rest of the house, and whom it vouches for. Types only.

/** Whom a provider vouches for. */
export interface Profile {
  subject: string;
  login?: string;
  name?: string;
  email?: string;
  emailVerified: boolean;
  /** Unix seconds at which the foreign account was made. */
  createdAt?: number;
  claims: Record<string, unknown>;
}
