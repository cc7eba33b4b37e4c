// Where the focus goes when a layer closes. Refuses to lose it: by keyboard one goes on from somewhere.

/** Back to what opened the layer; where an address opened it, or its opener has gone, to the page's content. */
export function giveFocusBack(opener: Element | null): void {
  const isThere = opener instanceof HTMLElement && opener !== document.body && opener.isConnected;
  const target = isThere ? opener : document.querySelector<HTMLElement>("#content");
  target?.focus(isThere ? {} : { preventScroll: true });
}
