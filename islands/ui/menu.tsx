// A button with a menu: native popover, placed at the button, walked with the arrow keys.
// Refuses to leave the focus lost: it returns to the button.
import { Fragment, useEffect, useId, useRef, useState } from "react";
import type { ComponentType, ReactNode } from "react";

export interface MenuItem {
  id: string;
  label: string;
  icon?: ComponentType<{ "aria-hidden"?: boolean; size?: number }>;
  /** Right-aligned hint: a shortcut. */
  hint?: string;
  isDanger?: boolean;
  isDisabled?: boolean;
  /** A tick before or after: makes it a checkable item. */
  isChecked?: boolean;
  href?: string;
  onSelect?: () => void;
}

/** Groups are separated by a line. */
export type MenuGroups = readonly (readonly MenuItem[])[];

export interface MenuProps {
  label: string;
  groups: MenuGroups;
  /** What the button shows. */
  children: ReactNode;
  className?: string;
  /** Free content above the items. */
  head?: ReactNode;
}

export function Menu({
  label,
  groups,
  children,
  className = "btn btn-ghost btn-square btn-sm",
  head,
}: MenuProps) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const [isOpen, setOpen] = useState(false);

  useEffect(() => {
    const menu = list.current;
    if (!isOpen || !menu) return undefined;
    place(menu, button.current);
    menu.querySelector<HTMLElement>("[role^=menuitem]")?.focus();
    const close = () => menu.hidePopover?.();
    window.addEventListener("resize", close);
    // The popover is fixed: what it hangs from may scroll away.
    document.addEventListener("scroll", close, { capture: true, passive: true });
    return () => {
      window.removeEventListener("resize", close);
      document.removeEventListener("scroll", close, { capture: true });
    };
  }, [isOpen]);

  const close = () => {
    list.current?.hidePopover?.();
    button.current?.focus();
  };

  const onKeyDown = (event: React.KeyboardEvent) => {
    const items = [
      ...(list.current?.querySelectorAll<HTMLElement>("[role^=menuitem]:not([aria-disabled=true])") ?? []),
    ];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + items.length, Home: 0, End: items.length - 1 }[
      event.key
    ];
    if (to !== undefined && items.length > 0) {
      event.preventDefault();
      items[to % items.length]?.focus();
    } else if (event.key === "Tab") {
      close();
    } else if (event.key.length === 1 && /\p{L}/u.test(event.key)) {
      const found = items.find((item) => item.textContent?.toLowerCase().startsWith(event.key.toLowerCase()));
      found?.focus();
    }
    event.stopPropagation();
  };

  return (
    <>
      <button
        ref={button}
        type="button"
        className={className}
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        popoverTarget={id}
        onClick={(event) => event.stopPropagation()}
      >
        {children}
      </button>
      <ul
        ref={list}
        id={id}
        popover="auto"
        role="menu"
        aria-label={label}
        className="menu pop"
        onToggle={(event) => setOpen(event.newState === "open")}
        onKeyDown={onKeyDown}
        onClick={(event) => event.stopPropagation()}
      >
        {isOpen ? (
          <>
            {head}
            {groups
              .filter((group) => group.length > 0)
              .map((group, index) => (
                <Fragment key={group[0]?.id}>
                  {index > 0 ? <li role="separator" /> : null}
                  {group.map((item) => (
                    <li key={item.id} role="none">
                      <Item item={item} close={close} />
                    </li>
                  ))}
                </Fragment>
              ))}
          </>
        ) : null}
      </ul>
    </>
  );
}

function Item({ item, close }: { item: MenuItem; close: () => void }) {
  const { icon: Icon } = item;
  const content = (
    <>
      {Icon ? <Icon aria-hidden size={16} /> : null}
      <span>{item.label}</span>
      {item.hint ? <small>{item.hint}</small> : null}
    </>
  );
  const shared = {
    tabIndex: -1,
    role: item.isChecked === undefined ? "menuitem" : "menuitemcheckbox",
    "aria-checked": item.isChecked,
    "aria-disabled": item.isDisabled || undefined,
    "data-danger": item.isDanger ? "" : undefined,
  } as const;
  if (item.href !== undefined) {
    return (
      <a {...shared} href={item.href}>
        {content}
      </a>
    );
  }
  return (
    <button
      type="button"
      {...shared}
      onClick={() => {
        if (item.isDisabled) return;
        // Checkable items stay open: several are often changed in a row.
        if (item.isChecked === undefined) close();
        item.onSelect?.();
      }}
    >
      {content}
    </button>
  );
}

/** Below the button, right edges aligned; above it where there is no room below. */
function place(menu: HTMLElement, button: HTMLElement | null): void {
  if (!button) return;
  const from = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const gap = 4;
  const left = Math.min(Math.max(8, from.right - width), window.innerWidth - width - 8);
  const below = from.bottom + gap;
  const top = below + height > window.innerHeight - 8 ? Math.max(8, from.top - gap - height) : below;
  menu.style.left = `${left}px`;
  menu.style.top = `${top}px`;
}
