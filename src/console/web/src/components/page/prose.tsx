/** Shows a text of the API, in which backticks enclose code. */
export function Prose({ text }: { readonly text: string }) {
  return text.split('`').map((part, index) => index % 2 === 1
    // oxlint-disable-next-line react/no-array-index-key -- the parts never change their order
    ? <code key={`${index} ${part}`}>{part}</code>
    : part)
}
