import { isUtf8 } from 'node:buffer'
import { parseHeaderParams } from '../http/header-params.ts'

/** A field of a form. `start` and `end` are the bounds of the value in the body; `end` is exclusive. */
export interface FormField {
  readonly value: string
  readonly start: number
  readonly end: number
}

export interface ValidForm {
  readonly ok: true
  /** The watched fields by name, in the order of the body. A name that repeats has several fields. */
  readonly fields: ReadonlyMap<string, readonly FormField[]>
  /** Number of all parts, including files. */
  readonly parts: number
  /** Bounds of the first delimiter, from its dashes to the end of the boundary. */
  readonly delimiter: { readonly start: number; readonly end: number }
}

export interface InvalidForm {
  readonly ok: false
  readonly message: string
}

/** Limits that no client's form reaches: parts, bytes of one part's headers, and bytes of a watched field's value. */
export const MAX_PARTS = 1_000
export const MAX_PART_HEADERS = 16 * 1024
export const MAX_FIELD_VALUE = 64 * 1024

const CRLF = '\r\n'
const CR = Buffer.from('\r')
const LF = Buffer.from('\n')
/** At most 70 characters, and the last is not a space (RFC 2046, section 5.1.1). */
const BOUNDARY = /^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^]*)$/

/**
 * Finds the fields in `watch` in a multipart/form-data body (RFC 7578, RFC 2046) without copying the other parts.
 * The upstream must read the same values, so a form is refused if parsers are known to read it differently. Refused are lines that begin
 * with the boundary but are no boundary line, bare line feeds, folded or repeated headers, encoded names that some parsers decode to a
 * watched name, and watched fields with a file name: some parsers read such a field as a value if the file name is empty.
 * Runs synchronously, so no other request is served during the scan. The time grows with the size of the body.
 */
export function scanMultipart(body: Buffer, contentType: string, watch: readonly string[]): ValidForm | InvalidForm {
  try {
    return readForm(body, boundaryOf(contentType), new Set(watch))
  } catch (error) {
    if (error instanceof Malformed) return { ok: false, message: error.message }
    throw error
  }
}

class Malformed extends Error {}

function boundaryOf(contentType: string): string {
  const type = parseHeaderParams(contentType)
  if (type?.value !== 'multipart/form-data') throw new Malformed('the content-type is not a well-formed multipart/form-data')
  // Refuse `boundary*`, from which parsers that support RFC 2231 read another boundary.
  if ([...type.params.keys()].some(name => name.startsWith('boundary*'))) {
    throw new Malformed('boundary* is not allowed in the content-type')
  }
  const boundary = type.params.get('boundary')?.replace(/\\([^])/g, '$1')
  if (boundary === undefined) throw new Malformed('the content-type names no boundary')
  if (!BOUNDARY.test(boundary)) throw new Malformed("the content-type's boundary is not 1 to 70 of the characters allowed")
  return boundary
}

function readForm(body: Buffer, boundary: string, watch: ReadonlySet<string>): ValidForm {
  const dashed = Buffer.from(`--${boundary}`)
  const inside = Buffer.concat([Buffer.from(CRLF), dashed])
  const fields = new Map<string, FormField[]>()
  let parts = 0
  let at = firstDelimiterEnd(body, dashed)
  const delimiter = { start: at - dashed.length, end: at }
  for (;;) {
    const start = partStart(body, at)
    if (start === -1) return { ok: true, fields, parts, delimiter }
    if (++parts > MAX_PARTS) throw new Malformed(`the form has more than ${MAX_PARTS} parts`)

    const headersEnd = body.subarray(start, start + MAX_PART_HEADERS).indexOf(CRLF + CRLF)
    if (headersEnd === -1) throw new Malformed(`part ${parts}: its headers do not end within ${MAX_PART_HEADERS} bytes`)
    if (body.subarray(start - CRLF.length, start + headersEnd).includes(inside)) {
      throw new Malformed(`part ${parts}: a boundary stands among its headers`)
    }
    const name = fieldName(body.toString('utf8', start, start + headersEnd), parts, watch)

    const valueStart = start + headersEnd + 4
    const next = boundaryLine(body, dashed, valueStart)
    if (next === -1) throw new Malformed('the closing boundary is missing')
    const valueEnd = next - CRLF.length
    // If the CRLF of the empty line also belongs to the delimiter, the part has no body.
    if (valueEnd < valueStart) throw new Malformed(`part ${parts} has no body`)
    if (name !== null) {
      const field = { value: fieldValue(body, valueStart, valueEnd, name), start: valueStart, end: valueEnd }
      const given = fields.get(name)
      if (given === undefined) fields.set(name, [field])
      else given.push(field)
    }
    at = next + dashed.length
  }
}

/** The offset after the first delimiter. A preamble may precede the delimiter. */
function firstDelimiterEnd(body: Buffer, dashed: Buffer): number {
  const at = boundaryLine(body, dashed, 0)
  if (body.length === 0) throw new Malformed('the body is empty')
  if (at === -1) throw new Malformed('the boundary does not occur in the body')
  return at + dashed.length
}

/**
 * The next line that begins with the boundary; -1 = none. Searches for the boundary with its line end, because a file could contain
 * millions of boundaries inside lines.
 */
function boundaryLine(body: Buffer, dashed: Buffer, from: number): number {
  if (from === 0 && body.subarray(0, dashed.length).equals(dashed)) return 0
  const before = Math.max(0, from - 1)
  const feed = body.indexOf(Buffer.concat([LF, dashed]), before)
  const bare = body.subarray(before, feed === -1 ? body.length : feed).indexOf(Buffer.concat([CR, dashed]))
  if (bare !== -1) throw notAfterCrlf(before + bare + 1)
  if (feed !== -1 && body[feed - 1] !== 0x0d) throw notAfterCrlf(feed + 1)
  return feed === -1 ? -1 : feed + 1
}

function notAfterCrlf(at: number): Malformed {
  return new Malformed(`a boundary line does not begin after CRLF, at byte ${at}`)
}

/** The start of the part whose boundary ends at `at`; -1 = the boundary closes the form. */
function partStart(body: Buffer, at: number): number {
  const closing = body[at] === 0x2d && body[at + 1] === 0x2d
  let end = closing ? at + 2 : at
  while (body[end] === 0x20 || body[end] === 0x09) end++
  if (closing && end === body.length) return -1
  if (body[end] !== 0x0d || body[end + 1] !== 0x0a) throw new Malformed(`a boundary line does not end in CRLF, at byte ${end}`)
  return closing ? -1 : end + 2
}

/** The part's name; null = the name is not watched. */
function fieldName(headers: string, part: number, watch: ReadonlySet<string>): string | null {
  let disposition: string | undefined
  let encoding = ''
  for (const line of headers.split(CRLF)) {
    const [, name, value] = HEADER.exec(line) ?? []
    if (name === undefined || value === undefined || /[\r\n\0]/.test(value)) throw new Malformed(`part ${part} has a malformed header`)
    const lowerCase = name.toLowerCase()
    if (lowerCase === 'content-transfer-encoding') encoding = value.trim().toLowerCase()
    if (lowerCase !== 'content-disposition') continue
    if (disposition !== undefined) throw new Malformed(`part ${part} has two content-disposition headers`)
    disposition = value
  }

  const parsed = disposition === undefined ? null : parseHeaderParams(disposition)
  const quoted = parsed?.params.get('name')
  if (parsed?.value !== 'form-data' || quoted === undefined) {
    throw new Malformed(`part ${part} has no content-disposition of form-data with a name`)
  }
  const names = [...parsed.params.keys()]
  if (names.some(name => name.startsWith('name*'))) throw new Malformed(`part ${part}: name* is not allowed in forms`)
  const name = decodedName(quoted)
  const isFile = names.some(name => name === 'filename' || name.startsWith('filename*'))
  if (isFile && watch.has(name)) throw new Malformed(`part ${part}: "${name}" is a field, not a file`)
  if (!watch.has(name)) {
    // Refuse encoded words (RFC 2047). Commons FileUpload decodes them, but no client sends them.
    if (/=\?[^?]*\?[bq]\?/i.test(quoted)) throw new Malformed(`part ${part}: its name is an encoded word`)
    const misread = otherReadings(quoted).find(reading => watch.has(reading))
    if (misread !== undefined) throw new Malformed(`part ${part}: its name can be mistaken for "${misread}"`)
    return null
  }
  if (!['', '7bit', '8bit', 'binary'].includes(encoding)) throw new Malformed(`part ${part}: a transfer encoding is not allowed in forms`)
  return name
}

/** Decodes %22, %0D and %0A, which browsers write (HTML standard, "multipart form data"), and backslashes, which other clients write. */
function decodedName(quoted: string): string {
  return quoted.replace(/\\(["\\])|%(22|0D|0A)/gi, (_, char: string | undefined, hex: string) =>
    char ?? String.fromCharCode(Number.parseInt(hex, 16)))
}

/** Names that less strict parsers read. PHP, for example, removes leading spaces. */
function otherReadings(quoted: string): string[] {
  const unescaped = quoted.replace(/\\([^])/g, '$1')
  const percent = (text: string): string =>
    text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return [quoted, unescaped, percent(quoted), percent(unescaped)].map(reading => reading.trim())
}

function fieldValue(body: Buffer, start: number, end: number, name: string): string {
  if (end - start > MAX_FIELD_VALUE) throw new Malformed(`the field "${name}" is longer than ${MAX_FIELD_VALUE} bytes`)
  const bytes = body.subarray(start, end)
  if (!isUtf8(bytes)) throw new Malformed(`the field "${name}" is not UTF-8`)
  return bytes.toString()
}
