// The table of pages: one row per path, saying frame, screen, loader, role and title. serve-pages.ts registers them.
// Refuses logic: loaders live in load-*.ts beside this file, markup in views/ and islands/screens/.
import { aboutPage, brokenPage, forbiddenPage, notFoundPage } from "./plain-pages.tsx";
import type { Page } from "./page.ts";

export { brokenPage, forbiddenPage, notFoundPage };

export const pages: readonly Page[] = [
  // Public
  aboutPage,
];
