/** Removes white space at the end of a header's value. HTTP/2 forbids such values, and clients drop them (RFC 9113 section 8.2.1). */
export function trimTrailingSpace(value: string): string {
  let end = value.length
  while (end > 0 && (value.charCodeAt(end - 1) === 0x20 || value.charCodeAt(end - 1) === 0x09)) end--
  return end === value.length ? value : value.slice(0, end)
}
