// A text as it is, with its line breaks: what people write, and an answer until the part that draws Markdown is there.

export function PlainText({ text }: { text: string }) {
  return <p className="break-words whitespace-pre-wrap">{text}</p>;
}
