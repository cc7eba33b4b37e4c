// One tab of the views above a list: a link to its address that opens without leaving the page.

export function Tab({
  href,
  isOpen,
  onOpen,
  children,
}: {
  href: string;
  isOpen: boolean;
  onOpen: () => void;
  children: React.ReactNode;
}) {
  return (
    <a
      href={href}
      className="tab"
      aria-current={isOpen ? "page" : undefined}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        onOpen();
      }}
    >
      {children}
    </a>
  );
}
