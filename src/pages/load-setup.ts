// First state of the setup wizard: which database was found, and whether an administrator exists.
// Refuses nothing: before the setup everybody may see this, afterwards the page is gone.
import { setupState } from "../core/setup.ts";
import type { LoaderContext } from "./page.ts";

export async function loadSetup({ deps }: LoaderContext) {
  const { rootExists } = await setupState(deps);
  return { databaseType: deps.db.kind, rootExists };
}
