/** @returns the media type in a Content-Type, without its parameters and in small letters; empty where it names none */
export function mediaType(contentType: string): string {
  const end = contentType.indexOf(';')
  return (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase()
}
