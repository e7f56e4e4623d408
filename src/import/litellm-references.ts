/** Writes `os.environ/NAME` as a reference of the gateway, and escapes any other text so that it is not a reference. */
export function toReference(text: string): string {
  const name = variableOf(text)
  return name === null ? text.replaceAll('${', () => '$${') : `\${${name}}`
}

/** The variable that `os.environ/NAME` refers to; null for any other text. */
export function variableOf(text: string): string | null {
  return /^os\.environ\/([A-Za-z_]\w*)$/.exec(text)?.[1] ?? null
}

/** The note for a key that the file has itself. */
export function notCopied(variable: string): string {
  return `the key itself is not copied: put it into the environment as ${variable}`
}
