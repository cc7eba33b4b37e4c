// The cursor of charts over time: pointer and keys move it, drag or Shift+arrows choose a stretch, Enter acts on it.
// Refuses to be pointer-only: whatever a drag can do, keys can.
import { useState } from "react";
import type { KeyboardEvent, PointerEvent } from "react";

export interface Span {
  first: number;
  last: number;
}

export interface ChartCursor {
  /** The bar below the pointer, else what is pinned. */
  span: Span | undefined;
  /** Chosen by a click or by keys; stays when the pointer leaves. */
  pinned: Span | undefined;
  clear: () => void;
  /** For the element that is as wide as all bars together. */
  handlers: {
    onKeyDown: (event: KeyboardEvent<HTMLElement>) => void;
    onPointerDown: (event: PointerEvent<HTMLElement>) => void;
    onPointerMove: (event: PointerEvent<HTMLElement>) => void;
    onPointerUp: () => void;
    onPointerCancel: () => void;
    onPointerLeave: () => void;
  };
}

export interface ChartCursorOptions {
  /** Number of bars. */
  size: number;
  /** Enter on a single bar. */
  onOpen: (span: Span) => void;
  /** A stretch was dragged, or chosen with Shift and confirmed with Enter. */
  onZoom: (span: Span) => void;
  /** A click on a single bar; it is pinned where this is absent. */
  onClick?: (span: Span) => void;
}

interface Pin {
  at: number;
  anchor: number | undefined;
}

/** One cursor may serve several charts of the same bars. */
export function useChartCursor({ size, onOpen, onZoom, onClick }: ChartCursorOptions): ChartCursor {
  const [hover, setHover] = useState<number>();
  const [pin, setPin] = useState<Pin>();
  const [isDragging, setDragging] = useState(false);
  const clamp = (bar: number) => Math.min(size - 1, Math.max(0, bar));
  const spanOf = ({ at, anchor = at }: Pin): Span => ({
    first: clamp(Math.min(at, anchor)),
    last: clamp(Math.max(at, anchor)),
  });
  const clear = () => {
    setPin(undefined);
    setHover(undefined);
    setDragging(false);
  };
  const barAt = (event: PointerEvent<HTMLElement>): number => {
    const box = event.currentTarget.getBoundingClientRect();
    return box.width === 0 ? 0 : clamp(Math.floor(((event.clientX - box.left) / box.width) * size));
  };
  const act = (span: Span) => {
    if (span.first === span.last) onOpen(span);
    else {
      clear();
      onZoom(span);
    }
  };
  const pinned = pin && size > 0 ? spanOf(pin) : undefined;

  return {
    span: size > 0 && hover !== undefined && !isDragging ? spanOf({ at: hover, anchor: undefined }) : pinned,
    pinned,
    clear,
    handlers: {
      onKeyDown(event) {
        if (size === 0) return;
        const now = pin ? clamp(pin.at) : undefined;
        const to = {
          ArrowLeft: (now ?? size) - 1,
          ArrowRight: (now ?? -1) + 1,
          PageUp: (now ?? size) - 7,
          PageDown: (now ?? -1) + 7,
          Home: 0,
          End: size - 1,
        }[event.key];
        if (to !== undefined) {
          setHover(undefined);
          setPin({ at: clamp(to), anchor: event.shiftKey ? (pin?.anchor ?? now) : undefined });
        } else if (event.key === "Enter" && pinned) act(pinned);
        else if (event.key === "Escape" && pinned) clear();
        else return;
        event.preventDefault();
        event.stopPropagation();
      },
      onPointerDown(event) {
        if (event.button !== 0 || size === 0) return;
        event.currentTarget.setPointerCapture?.(event.pointerId);
        const at = barAt(event);
        setDragging(true);
        setPin({ at, anchor: at });
      },
      onPointerMove(event) {
        if (size === 0) return;
        const at = barAt(event);
        setHover(at);
        if (isDragging) setPin((before) => before && { ...before, at });
      },
      onPointerUp() {
        if (!isDragging || !pinned) return;
        setDragging(false);
        if (pinned.first !== pinned.last) act(pinned);
        else if (onClick) {
          clear();
          onClick(pinned);
        } else setPin({ at: pinned.first, anchor: undefined });
      },
      onPointerCancel: clear,
      onPointerLeave() {
        if (!isDragging) setHover(undefined);
      },
    },
  };
}
