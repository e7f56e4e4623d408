/** A sentence of the gateway's, in which `…` marks what is code. */
export function Prose({ text }: { readonly text: string }) {
  return text.split('`').map((part, index) => index % 2 === 1
    // oxlint-disable-next-line react/no-array-index-key -- a part of a sentence is its place in it
    ? <code key={`${index} ${part}`}>{part}</code>
    : part)
}
