// The package carries no types; what it answers is judged where it is read.
declare module "parse-prometheus-text-format" {
  export default function parse(text: string): unknown;
}
