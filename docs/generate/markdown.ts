/** The first line of a page that is generated from the sources. */
export function generatedFrom(source: string): string {
  return `<!-- Generated from ${source} by npm run docs:generate. Do not edit. -->`
}

/** A Markdown table. Line ends and bars inside a cell are escaped. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cellText).join(' | ')} |`
  return [line(titles), `|${'---|'.repeat(titles.length)}`, ...rows.map(line)].join('\n')
}

/** Text as code. */
export function code(text: string): string {
  return `\`${text}\``
}

/** Plain text as Markdown, without HTML or template placeholders. */
export function plain(text: string): string {
  return text.replace(/[<>]/g, sign => (sign === '<' ? '&lt;' : '&gt;')).replaceAll('*', String.raw`\*`)
    .replaceAll('{{', '&#123;&#123;')
}

function cellText(text: string): string {
  return text.replaceAll('|', String.raw`\|`).replace(/\s*\n\s*/g, ' ')
}
