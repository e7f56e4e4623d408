import { bytesEqual } from '../json/cursor.ts'
import { readUsage, type ReportedUsage } from '../usage/reported-usage.ts'
import type { StreamEvent } from '../events/stream-event.ts'
import { EventMeter } from '../events/event-meter.ts'
import { CONVERSE_USAGE } from './usage.ts'

const BLOCK_START = Buffer.from('contentBlockStart')
const BLOCK_DELTA = Buffer.from('contentBlockDelta')
const METADATA = Buffer.from('metadata')
const USAGE = Buffer.from('usage')
const INDEX = Buffer.from('contentBlockIndex')
const DELTA = Buffer.from('delta')
const TEXT = Buffer.from('text')
const TOOL_USE = Buffer.from('toolUse')
const INPUT = Buffer.from('input')
const REASONING = Buffer.from('reasoningContent')

/** Meters a stream of content blocks that ends with `metadata`, which contains the usage. */
export class ConverseMeter extends EventMeter {
  reading(): ReportedUsage | null {
    return readUsage(CONVERSE_USAGE, this.lastUsage(), this.terminated === true)
  }

  protected read({ buf, dataStart, dataEnd, nameStart, nameEnd }: StreamEvent): void {
    const { cursor } = this
    const isNamed = (name: Buffer): boolean => bytesEqual(buf, nameStart, nameEnd, name)
    cursor.reset(buf, dataStart, dataEnd)
    if (isNamed(BLOCK_DELTA)) {
      this.#block(buf)
    } else if (isNamed(BLOCK_START)) {
      this.sawContent = true
    } else if (isNamed(METADATA) && cursor.beginObject()) {
      while (cursor.nextMember()) {
        if (cursor.keyIs(USAGE)) this.keepUsage(buf)
        else cursor.skip()
      }
      this.markOutputReported()
      this.terminated = true
    }
  }

  #block(buf: Buffer): void {
    const { cursor } = this
    let index = 0
    if (!cursor.beginObject()) return
    while (cursor.nextMember()) {
      if (cursor.keyIs(INDEX)) index = this.index(buf)
      else if (cursor.keyIs(DELTA) && cursor.beginObject()) this.#delta(index, buf)
      else cursor.skip()
    }
  }

  #delta(index: number, buf: Buffer): void {
    const { cursor } = this
    while (cursor.nextMember()) {
      if (cursor.keyIs(TEXT)) this.text('content', index, buf)
      else if (cursor.keyIs(TOOL_USE) && cursor.beginObject()) this.#textMember('tool', INPUT, index, buf)
      else if (cursor.keyIs(REASONING) && cursor.beginObject()) this.#textMember('reasoning', TEXT, index, buf)
      else {
        this.noteUncountable()
        cursor.skip()
      }
    }
  }

  #textMember(kind: 'tool' | 'reasoning', name: Buffer, index: number, buf: Buffer): void {
    const { cursor } = this
    while (cursor.nextMember()) {
      if (cursor.keyIs(name)) this.text(kind, index, buf)
      else cursor.skip()
    }
  }
}
