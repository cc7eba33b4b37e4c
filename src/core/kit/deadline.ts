// The bounded wait for the database, for the rooms of core.
export { DeadlineExceeded, within } from "../../db/deadline.ts";
