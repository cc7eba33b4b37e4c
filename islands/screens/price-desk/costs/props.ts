// What the parts of the costs of a channel are given.
// Holds types only.

export interface CostPartProps {
  channelId: number;
  /** Root. */
  canWrite: boolean;
  /** Raised by every write. */
  version: number;
  onChanged: () => void;
}
