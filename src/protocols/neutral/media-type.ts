/** Registered media types by the unregistered names that clients use. Source: IANA, Media Types. */
const REGISTERED: ReadonlyMap<string, string> = new Map(Object.entries({
  'image/jpg': 'image/jpeg', 'image/pjpeg': 'image/jpeg', 'image/x-jpeg': 'image/jpeg', 'image/x-png': 'image/png', 'image/x-webp': 'image/webp',
  'audio/x-wav': 'audio/wav', 'audio/wave': 'audio/wav', 'audio/vnd.wave': 'audio/wav', 'application/x-pdf': 'application/pdf',
  'text/x-markdown': 'text/markdown', 'application/csv': 'text/csv', 'text/x-csv': 'text/csv',
}))

/** The registered media type, in lower case and without parameters. */
export function registeredType(written: string): string {
  const plain = (written.split(';', 1)[0] as string).trim().toLowerCase()
  return REGISTERED.get(plain) ?? plain
}
