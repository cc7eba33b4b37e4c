// Leaving for another page or program; one place, so that tests can see where to.

let go = (url: string): void => location.assign(url);

export function leaveFor(url: string): void {
  go(url);
}

/** Opens beside this page; the other page learns nothing of this one. */
let open = (url: string): void => {
  window.open(url, "_blank", "noopener,noreferrer");
};

export function openBeside(url: string): void {
  open(url);
}

/** For tests: where people are sent. */
export function interceptLeaving(onLeave: (url: string) => void, onOpen: (url: string) => void): void {
  go = onLeave;
  open = onOpen;
}

/** Leaves by a form that is posted there, as providers of payments ask for. */
export function postTo(url: string, fields: Readonly<Record<string, string>>): void {
  const form = document.createElement("form");
  form.method = "post";
  form.action = url;
  form.hidden = true;
  for (const [name, value] of Object.entries(fields)) {
    const field = document.createElement("input");
    field.type = "hidden";
    field.name = name;
    field.value = value;
    form.append(field);
  }
  document.body.append(form);
  form.submit();
}
