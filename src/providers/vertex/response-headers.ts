const OF_BODY = new Set(['content-encoding', 'content-length'])

/** Removes the headers that describe the body, because the body is converted. @param headers flat */
export function withoutBodyHeaders(headers: readonly string[]): string[] {
  return headers.filter((_, i) => !OF_BODY.has((headers[i - i % 2] as string).toLowerCase()))
}

/** The content coding, lower-case; null = none. @param headers flat */
export function codingOf(headers: readonly string[]): string | null {
  const at = headers.findIndex((header, i) => i % 2 === 0 && header.toLowerCase() === 'content-encoding')
  return at === -1 ? null : (headers[at + 1] as string).trim().toLowerCase()
}
