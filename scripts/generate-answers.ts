// `bun run openapi`: reads out of the types of the routes what each console call answers, and writes it as JSON Schema to
// src/openapi/console-answers.json; with --print to the output. Refuses types that have no JSON form: what is documented must be what can travel.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

const ANSWERS_FILE = "src/openapi/console-answers.json";

const PROJECT_DIR = join(import.meta.dir, "..");
const HIDDEN = ts.TypeFlags.Undefined | ts.TypeFlags.Void | ts.TypeFlags.Never;

type Schema = { [keyword: string]: unknown };

interface Answers {
  /** Named row types, by their name without "Json". */
  schemas: Record<string, Schema>;
  /** "GET /api/user/self" → what it answers with status 200. */
  answers: Record<string, Schema>;
}

/** One pass over the types; named interfaces of ours become components. */
class Reader {
  readonly schemas = new Map<string, { type: ts.Type; schema: Schema }>();

  constructor(private readonly checker: ts.TypeChecker) {}

  /** `where` names the place in errors. */
  schemaOf(type: ts.Type, where: string): Schema {
    if (type.isUnion()) return this.unionOf(type.types, where);
    const { flags } = type;
    if (flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown)) return {};
    if (flags & ts.TypeFlags.Null) return { type: "null" };
    if (type.isStringLiteral()) return { type: "string", const: type.value };
    if (type.isNumberLiteral()) return { type: "number", const: type.value };
    if (flags & ts.TypeFlags.BooleanLiteral)
      return { type: "boolean", const: this.checker.typeToString(type) === "true" };
    if (flags & ts.TypeFlags.StringLike) return { type: "string" };
    if (flags & ts.TypeFlags.NumberLike) return { type: "number" };
    if (flags & ts.TypeFlags.BooleanLike) return { type: "boolean" };
    if (flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection)) return this.objectOf(type, where);
    throw new Error(`${where}: ${this.checker.typeToString(type)} has no JSON form`);
  }

  private unionOf(types: readonly ts.Type[], where: string): Schema {
    const members = types.filter((each) => !(each.flags & HIDDEN) && !isResponse(each));
    const all = members.map((each) => this.schemaOf(each, where));
    const literals = all.filter((each) => "const" in each && each["type"] !== "boolean");
    const booleans = all.filter((each) => each["type"] === "boolean");
    const rest = all.filter((each) => !literals.includes(each) && !booleans.includes(each));
    const parts: Schema[] = [
      ...rest.filter((each) => each["type"] !== "null"),
      ...merged(literals),
      ...(booleans.length === 2 ? [{ type: "boolean" }] : booleans),
      ...rest.filter((each) => each["type"] === "null"),
    ];
    const [first] = parts;
    if (!first) throw new Error(`${where}: an empty union`);
    if (parts.length === 1) return first;
    const isPlain = (each: Schema) => typeof each["type"] === "string" && Object.keys(each).length === 1;
    return parts.every(isPlain) ? { type: parts.map((each) => each["type"]) } : { anyOf: parts };
  }

  private objectOf(type: ts.Type, where: string): Schema {
    const { checker } = this;
    if (checker.isArrayType(type) || checker.isTupleType(type)) {
      const [item, ...more] = checker.getTypeArguments(type as ts.TypeReference);
      if (!item) throw new Error(`${where}: an empty list`);
      if (more.length === 0) return { type: "array", items: this.schemaOf(item, `${where}[]`) };
      return { type: "array", items: this.unionOf([item, ...more], `${where}[]`) };
    }
    if (type.getCallSignatures().length > 0) throw new Error(`${where}: a function cannot travel`);
    const name = componentName(type);
    if (name === undefined) return this.membersOf(type, where);
    const known = this.schemas.get(name);
    if (known && known.type !== type) throw new Error(`${where}: two types are called ${name}`);
    if (!known) {
      const entry = { type, schema: {} as Schema };
      this.schemas.set(name, entry);
      entry.schema = { ...this.describedBy(type.symbol), ...this.membersOf(type, name) };
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  private membersOf(type: ts.Type, where: string): Schema {
    const properties: Record<string, Schema> = {};
    const required: string[] = [];
    for (const property of type.getProperties()) {
      const at = `${where}.${property.name}`;
      const own = this.checker.getTypeOfSymbol(property);
      if (own.flags & HIDDEN) continue;
      properties[property.name] = { ...this.schemaOf(own, at), ...this.describedBy(property) };
      const mayBeUndefined = own.isUnion() && own.types.some((each) => each.flags & ts.TypeFlags.Undefined);
      if (!(property.flags & ts.SymbolFlags.Optional) && !mayBeUndefined) required.push(property.name);
    }
    const values = this.checker.getIndexTypeOfType(type, ts.IndexKind.String);
    return {
      type: "object",
      ...(Object.keys(properties).length > 0 ? { properties } : {}),
      ...(required.length > 0 ? { required } : {}),
      ...(values ? { additionalProperties: this.schemaOf(values, `${where}.*`) } : {}),
    };
  }

  /** The comment above a field, as the people who wrote it say what it means. */
  private describedBy(symbol: ts.Symbol): { description?: string } {
    const isOurs = symbol.declarations?.some((each) => !each.getSourceFile().isDeclarationFile) ?? false;
    const text = isOurs ? ts.displayPartsToString(symbol.getDocumentationComment(this.checker)) : "";
    // The sign marks for us what the family's API does not have.
    const description = text.replace("†", "").replace(/\s+/g, " ").trim();
    return description === "" ? {} : { description };
  }
}

const isResponse = (type: ts.Type): boolean => type.symbol?.name === "Response";

/** Literals of one kind are one enumeration. */
function merged(literals: readonly Schema[]): Schema[] {
  if (literals.length < 2) return [...literals];
  return [...new Set(literals.map((each) => each["type"]))].map((type) => ({
    type,
    // In an order of their own: the compiler's is that in which it met them.
    enum: literals
      .filter((each) => each["type"] === type)
      .map((each) => each["const"] as string | number)
      .toSorted((a, b) => (a < b ? -1 : 1)),
  }));
}

/** Interfaces of ours that stand for themselves; `Success<…>` and shapes without a name are written where they stand. */
function componentName(type: ts.Type): string | undefined {
  const { symbol } = type;
  if (!symbol || !(symbol.flags & ts.SymbolFlags.Interface)) return undefined;
  if ((type as ts.TypeReference).typeArguments?.length) return undefined;
  const isOurs = symbol.declarations?.every((each) => /\/src\//.test(each.getSourceFile().fileName));
  return isOurs === true ? symbol.name.replace(/Json$/, "") : undefined;
}

/** The tree that Elysia keeps of its routes: path pieces, at the ends methods. */
function collect(reader: Reader, checker: ts.TypeChecker, routes: ts.Type): Record<string, Schema> {
  const answers: Record<string, Schema> = {};
  const visit = (type: ts.Type, path: readonly string[]): void => {
    for (const property of type.getProperties()) {
      const own = checker.getTypeOfSymbol(property);
      const response = own.getProperty("response");
      if (!response || !own.getProperty("params")) {
        visit(own, [...path, property.name]);
        continue;
      }
      if (path[0] !== "api" || property.name === "options") continue;
      const name = `${property.name.toUpperCase()} /${path.join("/")}`;
      const good = checker.getTypeOfSymbol(response).getProperty("200");
      if (!good) throw new Error(`${name}: answers nothing with status 200`);
      const answer = checker.getTypeOfSymbol(good);
      // A file: what it is stands in the document's table.
      if (isResponse(answer)) continue;
      answers[name] = reader.schemaOf(answer, name);
    }
  };
  visit(routes, []);
  return answers;
}

/** The file's JSON, as the types of the sources in this directory have it now. */
function consoleAnswers(): string {
  const read = ts.readConfigFile(join(PROJECT_DIR, "tsconfig.json"), (path) => ts.sys.readFile(path));
  const { options } = ts.parseJsonConfigFileContent(read.config, ts.sys, PROJECT_DIR);
  const entry = join(PROJECT_DIR, "src/routes.ts");
  const program = ts.createProgram([entry], options);
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(entry);
  const module = source && checker.getSymbolAtLocation(source);
  const exported = module && checker.getExportsOfModule(module).find((symbol) => symbol.name === "Routes");
  const tree = exported && checker.getDeclaredTypeOfSymbol(exported).getProperty("~Routes");
  if (!tree) throw new Error("src/routes.ts exports no Routes of the form that is known here");
  const reader = new Reader(checker);
  const answers = collect(reader, checker, checker.getTypeOfSymbol(tree));
  const sorted = <T>(entries: [string, T][]) =>
    Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  const file: Answers = {
    schemas: sorted([...reader.schemas].map(([name, { schema }]) => [name, schema])),
    answers: sorted(Object.entries(answers)),
  };
  return JSON.stringify(file);
}

const text = consoleAnswers();
if (process.argv.includes("--print")) {
  process.stdout.write(text);
} else {
  const file = join(PROJECT_DIR, ANSWERS_FILE);
  writeFileSync(file, text);
  // As the format check wants it.
  Bun.spawnSync([process.execPath, "fmt", file]);
  console.log(`${ANSWERS_FILE}: ${Object.keys((JSON.parse(text) as Answers).answers).length} calls`);
}
