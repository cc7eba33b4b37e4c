// The name that a model is priced under.

/** Names of custom GPTs are priced under one name each. */
export function priceName(model: string): string {
  if (model.startsWith("gpt-4-gizmo")) return "gpt-4-gizmo-*";
  if (model.startsWith("gpt-4o-gizmo")) return "gpt-4o-gizmo-*";
  return model;
}
