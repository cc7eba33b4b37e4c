// First state of the price desk: which section is open, and what its visitor may do.
import { DESK_SECTIONS } from "../shared/price-desk.ts";
import type { DeskPageData } from "../shared/price-desk.ts";
import { Role } from "../shared/enums.ts";
import type { LoaderContext } from "./page.ts";

export function loadPriceDesk({ url, user }: LoaderContext): DeskPageData {
  const asked = url.searchParams.get("section");
  return {
    section: asked === "plan" ? "plan" : (DESK_SECTIONS.find((each) => each === asked) ?? "models"),
    canApply: user !== undefined && user.role >= Role.root,
  };
}
