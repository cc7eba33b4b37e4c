// What leaving a field does to the page waits while a button of the mouse or a finger is down: whatever is being pressed
// stays where it is until it is let go. Refuses to hold anything back from the press itself: its click finds it done.

const waiting: (() => void)[] = [];
let isDown = false;
let isWatched = false;

function release(): void {
  isDown = false;
  for (const run of waiting.splice(0)) run();
}

/**
 * A finger's mouse events follow its pointerup, so both beginnings and both ends count. The click comes first to us, in
 * the capturing phase of the window; a press that ends elsewhere makes none, which the timer tells.
 */
function watch(): void {
  isWatched = true;
  const begin = (event: MouseEvent) => {
    if (event.button === 0) isDown = true;
  };
  const end = () => {
    isDown = false;
    setTimeout(() => {
      if (!isDown) release();
    });
  };
  for (const name of ["pointerdown", "mousedown"] as const) addEventListener(name, begin, true);
  for (const name of ["pointerup", "mouseup", "pointercancel", "blur"]) addEventListener(name, end, true);
  addEventListener("click", release, true);
}

/** Begins to listen; called by what may have to wait, before the first press. */
export function watchPresses(): void {
  if (!isWatched) watch();
}

/** Runs at once where nothing is pressed, else when the press is over and before its click is handled. */
export function afterPress(run: () => void): void {
  if (isDown) waiting.push(run);
  else run();
}
