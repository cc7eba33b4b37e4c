// The button of a form that waits for the server: turns while it does, and takes no second press.
import type { ReactNode } from "react";

export function BusyButton({
  isBusy,
  className,
  onPress,
  children,
}: {
  isBusy: boolean;
  className: string;
  /** Without it the button submits its form. */
  onPress?: () => void;
  children: ReactNode;
}) {
  return (
    <button
      type={onPress ? "button" : "submit"}
      className={`btn ${className}`}
      aria-busy={isBusy}
      aria-disabled={isBusy}
      onClick={(event) => {
        if (isBusy) event.preventDefault();
        else onPress?.();
      }}
    >
      {isBusy ? <span className="loading loading-spinner loading-xs" aria-hidden /> : null}
      {children}
    </button>
  );
}
