/** @returns the media type in a Content-Type, in lower case and without parameters; empty = it has none */
export function mediaType(contentType: string): string {
  const end = contentType.indexOf(';')
  return (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase()
}
