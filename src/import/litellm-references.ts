/** Converts `os.environ/NAME` to a reference of the gateway. Any other text is escaped, so that it contains no reference. */
export function toReference(text: string): string {
  const name = variableOf(text)
  return name === null ? text.replaceAll('${', () => '$${') : `\${${name}}`
}

/** The variable in `os.environ/NAME`; null = the text is not such a reference. */
export function variableOf(text: string): string | null {
  return /^os\.environ\/([A-Za-z_]\w*)$/.exec(text)?.[1] ?? null
}

/** The note for a key that the file contains itself. */
export function notCopied(variable: string): string {
  return `the key itself is not copied: put it into the environment as ${variable}`
}
