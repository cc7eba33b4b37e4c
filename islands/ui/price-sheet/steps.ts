// A state that changes step by step, with the way back and forth; each step says what it did.
import { computed, signal } from "@preact/signals-react";
import type { ReadonlySignal } from "@preact/signals-react";

interface Step<State> {
  /** Before a step that was done, after one that was taken back. */
  state: State;
  /** What the step did, as a sentence in the visitor's language. */
  label: string;
}

export interface Steps<State> {
  now: ReadonlySignal<State>;
  /** Label of the step that `undo` would take back, of the one that `redo` would do again. */
  undoable: ReadonlySignal<string | undefined>;
  redoable: ReadonlySignal<string | undefined>;
  step: (next: State, label: string) => void;
  undo: () => void;
  redo: () => void;
  /** Changes what is now, and every state that undo and redo lead to; that is no step. */
  revise: (change: (state: State) => State) => void;
  /** Keeps what is now, and forgets how it came about. */
  forget: () => void;
}

export function createSteps<State>(first: State): Steps<State> {
  const now = signal(first);
  const past = signal<readonly Step<State>[]>([]);
  const future = signal<readonly Step<State>[]>([]);
  const move = (from: typeof past, to: typeof past): void => {
    const step = from.peek().at(-1);
    if (!step) return;
    from.value = from.peek().slice(0, -1);
    to.value = [...to.peek(), { state: now.peek(), label: step.label }];
    now.value = step.state;
  };
  return {
    now,
    undoable: computed(() => past.value.at(-1)?.label),
    redoable: computed(() => future.value.at(-1)?.label),
    step(next, label) {
      past.value = [...past.peek(), { state: now.peek(), label }];
      future.value = [];
      now.value = next;
    },
    undo: () => move(past, future),
    redo: () => move(future, past),
    revise(change) {
      const revised = (steps: readonly Step<State>[]) =>
        steps.map((step) => ({ ...step, state: change(step.state) }));
      past.value = revised(past.peek());
      future.value = revised(future.peek());
      now.value = change(now.peek());
    },
    forget() {
      past.value = [];
      future.value = [];
    },
  };
}
