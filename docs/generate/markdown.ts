/** What a page says of itself that is made from the sources. */
export function generatedFrom(source: string): string {
  return `<!-- Made from ${source} by npm run docs:generate: a change here is lost. -->`
}

/** A Markdown table; a line end or a bar inside a cell does not break it. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cellText).join(' | ')} |`
  return [line(titles), `|${'---|'.repeat(titles.length)}`, ...rows.map(line)].join('\n')
}

/** Text as code, whatever it is made of. */
export function code(text: string): string {
  return `\`${text}\``
}

/** Plain text as Markdown: what looks like a placeholder of HTML or of a template is none. */
export function plain(text: string): string {
  return text.replace(/[<>]/g, sign => (sign === '<' ? '&lt;' : '&gt;')).replaceAll('*', String.raw`\*`)
    .replaceAll('{{', '&#123;&#123;')
}

function cellText(text: string): string {
  return text.replaceAll('|', String.raw`\|`).replace(/\s*\n\s*/g, ' ')
}
