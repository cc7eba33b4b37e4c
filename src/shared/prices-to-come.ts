// What users are told of prices to come where there is no room for the prices themselves.
// Holds a type only.

/** What changes at one moment. */
export interface PricesToCome {
  /** Unix seconds. */
  effective_at: number;
  models: string[];
  groups: { group: string; before: number; after: number }[];
}
