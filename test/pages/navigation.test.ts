// The navigation never leads nowhere: each of its entries is a row of the page table with the same role.
import { expect, test } from "bun:test";
import { pages } from "../../src/pages/pages.ts";
import { Role } from "../../src/shared/enums.ts";
import { HOME_OF_CONSOLE, NAV } from "../../src/shared/navigation.ts";

const ACCESS = { [Role.user]: "user", [Role.admin]: "admin", [Role.root]: "root" } as Record<number, string>;

test("every entry of the navigation is a page that its role may open", () => {
  const access = new Map(pages.map((page) => [page.path, page.access]));
  const entries = NAV.flatMap((group) => group.entries);
  expect(entries.length).toBeGreaterThan(3);
  for (const { href, role } of entries) {
    // Some are open to everybody, and stand in the console for whoever is signed in.
    const opensTo = access.get(href) === "public" ? "public" : ACCESS[role];
    expect([href, access.get(href)]).toEqual([href, opensTo as "user"]);
  }
  expect(access.has(HOME_OF_CONSOLE)).toBe(true);
});

test("shortcut keys are unique", () => {
  const keys = NAV.flatMap((group) => group.entries).flatMap(({ key }) => key ?? []);
  expect(new Set(keys).size).toBe(keys.length);
});
