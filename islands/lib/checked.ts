// Names that are chosen in a list of a server-rendered page, over its pages, and the button that copies them.
// A list says `name="model"` at its boxes, `data-check-all="model"` and `data-copy-checked="model"`.

/** In the order in which they were chosen. */
const chosen = new Map<string, Set<string>>();

function namesOf(list: string): Set<string> {
  const known = chosen.get(list) ?? new Set();
  chosen.set(list, known);
  return known;
}

const boxesOf = (list: string) =>
  document.querySelectorAll<HTMLInputElement>(`input[type=checkbox][name="${CSS.escape(list)}"]`);

/** Boxes, their head and the button as what is chosen asks; nothing is written that stands already. */
function show(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>("[data-copy-checked]")) {
    const list = button.dataset.copyChecked ?? "";
    const names = namesOf(list);
    const boxes = [...boxesOf(list)];
    for (const box of boxes) box.checked = names.has(box.value);
    const count = button.querySelector("[data-checked-count]");
    if (count && count.textContent !== String(names.size)) count.textContent = String(names.size);
    button.disabled = names.size === 0;
    const head = document.querySelector<HTMLInputElement>(`[data-check-all="${CSS.escape(list)}"]`);
    if (!head) continue;
    const here = boxes.filter((box) => box.checked).length;
    head.checked = here > 0 && here === boxes.length;
    head.indeterminate = here > 0 && here < boxes.length;
  }
}

function onChange({ target }: Event): void {
  if (!(target instanceof HTMLInputElement) || target.form) return;
  const all = target.dataset.checkAll;
  const list = all ?? target.name;
  if (!document.querySelector(`[data-copy-checked="${CSS.escape(list)}"]`)) return;
  const names = namesOf(list);
  for (const { value } of all === undefined ? [target] : boxesOf(list)) {
    if (target.checked) names.add(value);
    else names.delete(value);
  }
  show();
}

/** Where the browser gives no access to its clipboard the names are shown, selected, to be copied by hand. */
async function copy(button: HTMLElement, text: string): Promise<void> {
  const shown = document.querySelector<HTMLElement>("[data-copied-text]");
  try {
    await navigator.clipboard.writeText(text);
    if (shown) shown.hidden = true;
    button.dataset.copied = "";
    setTimeout(() => delete button.dataset.copied, 1500);
  } catch {
    if (!shown) return;
    shown.textContent = text;
    shown.hidden = false;
    getSelection()?.selectAllChildren(shown);
  }
}

export function startChecked(): void {
  document.addEventListener("change", onChange);
  document.addEventListener("click", ({ target }) => {
    const button = target instanceof Element ? target.closest<HTMLElement>("[data-copy-checked]") : null;
    if (button) void copy(button, [...namesOf(button.dataset.copyChecked ?? "")].join(","));
  });
  // Another page of the list, or the same in another language: its boxes come unchecked.
  new MutationObserver(show).observe(document.body, { childList: true, subtree: true });
}
