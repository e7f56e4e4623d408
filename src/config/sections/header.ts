import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'

const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** Headers that frame the message or control the connection. Only the gateway sets them. */
const RESERVED_HEADERS = new Set([
  'connection', 'content-length', 'expect', 'host', 'http2-settings', 'keep-alive', 'proxy-authenticate',
  'proxy-authorization', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade',
])

/** Converts a header name to lower case; reports an invalid or reserved name. */
export function headerName(text: string, path: Path, findings: Findings, at: 'key' | 'value' = 'value'): string {
  const name = text.toLowerCase()
  if (!HEADER_NAME.test(name)) findings.error(path, 'this is not a header name such as x-api-key', at)
  if (RESERVED_HEADERS.has(name)) findings.error(path, 'the gateway sets this header itself; remove it', at)
  return name
}

/** Reports a value that RFC 9110 section 5.5 forbids. Node would throw when it sends such a value. */
export function checkHeaderValue(value: string, path: Path, findings: Findings): void {
  if (/[\r\n]/.test(value)) {
    findings.error(path, 'the value has a line break, often at its end; remove it: it is not allowed in a header')
  } else if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
    findings.error(path, 'the value has a character that is not allowed in a header')
  } else if (value !== value.trim()) {
    findings.error(path, 'the value has spaces at its start or end')
  }
}
