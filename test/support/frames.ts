/** HTTP/2 frames (RFC 9113), for clients that break the rules of a library. */

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

export const DATA = 0
export const HEADERS = 1
export const RST_STREAM = 3
export const SETTINGS = 4
export const PING = 6
export const GOAWAY = 7
export const WINDOW_UPDATE = 8
export const CONTINUATION = 9

export const END_STREAM = 1
export const END_HEADERS = 4

export function frame(
  type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** A header block of literals without indexing and without Huffman coding (RFC 7541 section 6.2.2). */
export function headerBlock(fields: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]))
}

/** The opening of a connection: preface and empty SETTINGS. */
export function opening(): Buffer {
  return Buffer.concat([PREFACE, frame(SETTINGS, 0, 0)])
}

/** A request's HEADERS frame. */
export function request(
  stream: number, fields: readonly (readonly [string, string])[], end: boolean,
): Buffer {
  return frame(HEADERS, END_HEADERS | (end ? END_STREAM : 0), stream, headerBlock(fields))
}

/** RST_STREAM, with CANCEL by default. */
export function reset(stream: number, code = 8): Buffer {
  const payload = Buffer.alloc(4)
  payload.writeUInt32BE(code)
  return frame(RST_STREAM, 0, stream, payload)
}

export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

/** @returns the complete frames at the start of the received bytes */
export function parseFrames(bytes: Buffer): Frame[] {
  const frames: Frame[] = []
  let at = 0
  while (bytes.length - at >= 9) {
    const length = bytes.readUIntBE(at, 3)
    if (bytes.length - at < 9 + length) break
    frames.push({
      type: bytes[at + 3] as number,
      flags: bytes[at + 4] as number,
      stream: bytes.readUInt32BE(at + 5) & 0x7fffffff,
      payload: bytes.subarray(at + 9, at + 9 + length),
    })
    at += 9 + length
  }
  return frames
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1')
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes])
  // RFC 7541 section 5.1: a prefix of seven bits, then seven bits a byte.
  const length = [127]
  let left = bytes.length - 127
  for (; left >= 128; left = Math.floor(left / 128)) length.push((left % 128) | 128)
  return Buffer.concat([Buffer.from([...length, left]), bytes])
}
