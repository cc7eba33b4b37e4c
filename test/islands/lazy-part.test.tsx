// Parts that open later: at once when they were fetched early, with their texts, and again after a failure.
import { afterEach, describe, expect, spyOn, test } from "bun:test";
import { act, cleanup, screen } from "@testing-library/react";
import { useState } from "react";
import { loadAllTexts } from "../../islands/lib/all-texts.ts";
import { useT } from "../../islands/lib/i18n.ts";
import { lazyPart } from "../../islands/lib/lazy-part.tsx";
import { renderPart, settle } from "./render.tsx";

afterEach(cleanup);

function Dialog({ onClose }: { onClose: () => void }) {
  return (
    <div role="dialog" aria-label="Part">
      <button type="button" autoFocus onClick={onClose}>
        Close
      </button>
    </div>
  );
}

/** A page with a button that opens the part. */
function opener(load: () => Promise<{ default: typeof Dialog }>) {
  const Part = lazyPart(load);
  return function Opener() {
    const [isOpen, setOpen] = useState(false);
    return (
      <>
        <button type="button" onClick={() => setOpen(true)}>
          Open
        </button>
        {isOpen ? <Part onClose={() => setOpen(false)} /> : null}
      </>
    );
  };
}

describe("lazy part", () => {
  test("waits for its script the first time, and opens in the frame of the press from then on", async () => {
    let finish: ((module: { default: typeof Dialog }) => void) | undefined;
    const Opener = opener(() => new Promise((resolve) => (finish = resolve)));
    const { user } = renderPart(<Opener />);
    await user.click(screen.getByRole("button", { name: "Open" }));
    expect(screen.queryByRole("dialog")).toBeNull();
    await act(async () => finish?.({ default: Dialog }));
    await settle();
    expect(screen.getByRole("dialog", { name: "Part" })).toBeTruthy();
    expect(document.activeElement?.textContent).toBe("Close");
    await user.keyboard("{Enter}");
    expect(screen.queryByRole("dialog")).toBeNull();
    // Nothing may be awaited between the press and the part: focus would be taken back by then.
    act(() => screen.getByRole("button", { name: "Open" }).click());
    expect(screen.getByRole("dialog", { name: "Part" })).toBeTruthy();
  });

  test("a part that cannot be fetched says so, and Retry fetches again", async () => {
    const quiet = spyOn(console, "error").mockImplementation(() => undefined);
    let tries = 0;
    const Opener = opener(async () => {
      tries++;
      if (tries === 1) throw new Error("the network is gone");
      return { default: Dialog };
    });
    const { user } = renderPart(<Opener />);
    await user.click(screen.getByRole("button", { name: "Open" }));
    await settle();
    expect(screen.getByRole("alert").textContent).toContain("the network is gone");
    await user.click(screen.getByRole("button", { name: "Retry" }));
    await user.click(screen.getByRole("button", { name: "Open" }));
    await settle();
    expect(screen.getByRole("dialog", { name: "Part" })).toBeTruthy();
    expect(tries).toBe(2);
    quiet.mockRestore();
  });

  test("a part appears with its texts, which are fetched once", async () => {
    function Told() {
      return <p>{useT()("lazy.told")}</p>;
    }
    const Part = lazyPart(async () => ({ default: Told }));
    const asked: string[] = [];
    const fetching = spyOn(globalThis, "fetch").mockImplementation((async (url: string) => {
      asked.push(url);
      return Response.json({ "lazy.told": "Told in time" });
    }) as unknown as typeof fetch);
    renderPart(<Part />, { allTexts: "/a/texts-en-1.json" });
    await settle();
    expect(screen.getByText("Told in time")).toBeTruthy();
    await loadAllTexts();
    expect(asked).toEqual(["/a/texts-en-1.json"]);
    fetching.mockRestore();
  });

  test("texts that could not be had are asked for again", async () => {
    const fetching = spyOn(globalThis, "fetch").mockImplementationOnce(
      (async () => new Response("", { status: 502 })) as unknown as typeof fetch,
    );
    expect(await loadAllTexts("en", "/a/texts-en-2.json").catch(String)).toContain("502");
    fetching.mockImplementation((async () => Response.json({})) as unknown as typeof fetch);
    await loadAllTexts("en", "/a/texts-en-2.json");
    expect(fetching).toHaveBeenCalledTimes(2);
    fetching.mockRestore();
    await loadAllTexts("en", "");
  });
});
