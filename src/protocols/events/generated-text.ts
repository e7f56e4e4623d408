/** Kinds of generated text; each is counted and priced separately. */
export type TextKind = 'content' | 'reasoning' | 'tool'

export interface GeneratedRun {
  readonly kind: TextKind
  /** true = the content of JSON strings, with escapes; false = JSON, with white space. */
  readonly escaped: boolean
  readonly bytes: Uint8Array
}

/** The text generated so far: the runs that are kept, and the number of all bytes. */
export interface TextSample {
  readonly runs: readonly GeneratedRun[]
  /** Bytes as sent, by kind: `keptBytes` counts the kept text, `generatedBytes` counts all text. */
  readonly keptBytes: Readonly<Record<TextKind, number>>
  readonly generatedBytes: Readonly<Record<TextKind, number>>
}

const KINDS: readonly TextKind[] = ['content', 'reasoning', 'tool']
const HEADER_BYTES = 8
const FIRST_SIZE = 1024
const BACKSLASH = 0x5c
const MAX_ESCAPE_BYTES = 6
// All choices and tool calls from this index on share one lane: otherwise an upstream's index could grow a table without limit.
const MAX_INDEX = 1024

/**
 * Keeps generated text, so that its tokens can be counted if the stream ends abnormally. One buffer of limited size holds runs: lane,
 * length, bytes. A lane is one text: the content of a choice, its reasoning, or the arguments of a tool call. Bytes beyond the limit are
 * counted but not kept.
 */
export class GeneratedText {
  readonly #limit: number
  #buffer = Buffer.alloc(0)
  #used = 0
  #lane = -1
  /** Offset of the current run's header. */
  #run = 0
  #full = false
  readonly #keptBytes = [0, 0, 0]
  readonly #generatedBytes = [0, 0, 0]

  /** @param limit maximum bytes of the buffer */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** Appends bytes as the upstream sent them. @param index of the choice or tool call, from 0 @param escaped as in `GeneratedRun` */
  append(kind: TextKind, index: number, escaped: boolean, bytes: Buffer, start: number, end: number): void {
    if (end <= start) return
    const k = KINDS.indexOf(kind)
    this.#generatedBytes[k]! += end - start
    if (this.#full) return
    const lane = (Math.min(index, MAX_INDEX) * KINDS.length + k) * 2 + (escaped ? 1 : 0)
    const room = this.#limit - this.#used - (lane === this.#lane ? 0 : HEADER_BYTES)
    let length = end - start
    if (length > room) {
      this.#full = true
      length = safeCut(bytes, start, start + Math.max(0, room)) - start
      if (length <= 0) return
    }
    const needed = this.#used + length + HEADER_BYTES
    if (needed > this.#buffer.length) this.#grow(needed)
    if (lane !== this.#lane) this.#open(lane)
    bytes.copy(this.#buffer, this.#used, start, start + length)
    this.#used += length
    this.#buffer.writeUInt32LE(this.#buffer.readUInt32LE(this.#run + 4) + length, this.#run + 4)
    this.#keptBytes[k]! += length
  }

  get generatedBytes(): Readonly<Record<TextKind, number>> {
    return byKind(this.#generatedBytes)
  }

  /** Joins the bytes of each lane to one run. The lanes are in the order of their first bytes. */
  generated(): TextSample {
    const lanes = new Map<number, Uint8Array[]>()
    for (let at = 0; at < this.#used; ) {
      const lane = this.#buffer.readUInt32LE(at)
      const end = at + HEADER_BYTES + this.#buffer.readUInt32LE(at + 4)
      const pieces = lanes.get(lane) ?? []
      pieces.push(this.#buffer.subarray(at + HEADER_BYTES, end))
      lanes.set(lane, pieces)
      at = end
    }
    return {
      runs: [...lanes].map(([lane, pieces]) => ({
        kind: KINDS[(lane >> 1) % KINDS.length]!,
        escaped: (lane & 1) === 1,
        bytes: pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces),
      })),
      keptBytes: byKind(this.#keptBytes),
      generatedBytes: byKind(this.#generatedBytes),
    }
  }

  #open(lane: number): void {
    this.#run = this.#used
    this.#buffer.writeUInt32LE(lane, this.#run)
    this.#buffer.writeUInt32LE(0, this.#run + 4)
    this.#used += HEADER_BYTES
    this.#lane = lane
  }

  #grow(needed: number): void {
    const size = Math.min(this.#limit, Math.max(FIRST_SIZE, this.#buffer.length * 2, needed))
    const larger = Buffer.allocUnsafeSlow(Math.max(size, needed))
    this.#buffer.copy(larger, 0, 0, this.#used)
    this.#buffer = larger
  }
}

/** The last position up to `end` at which a cut splits no character and no escape. */
export function safeCut(bytes: Uint8Array, start: number, end: number): number {
  let cut = end
  while (cut > start && (bytes[cut]! & 0xc0) === 0x80) cut--
  for (let i = Math.max(start, cut - MAX_ESCAPE_BYTES); i < cut; i++) {
    if (bytes[i] === BACKSLASH) return i
  }
  return cut
}

function byKind(counts: readonly number[]): Record<TextKind, number> {
  return { content: counts[0]!, reasoning: counts[1]!, tool: counts[2]! }
}
