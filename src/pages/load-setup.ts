// First state of the setup wizard: which database was found, and whether an administrator exists.
// Before the setup everybody may see this; afterwards the page is gone.
import type { SetupData } from "../../islands/screens/setup/values.ts";
import { isImporting } from "../core/site/import-sign.ts";
import { databaseVersion, isFilling, setupState } from "../core/site/setup.ts";
import type { LoaderContext } from "./page.ts";

export async function loadSetup({ deps }: LoaderContext): Promise<SetupData> {
  const [{ rootExists }, version] = await Promise.all([setupState(deps), databaseVersion(deps)]);
  const isMoving = isFilling(deps.db) || (await isImporting(deps));
  return { databaseType: deps.db.kind, databaseVersion: version, rootExists, isMoving };
}
