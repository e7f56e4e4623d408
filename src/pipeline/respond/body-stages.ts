import { MemoryReservation } from '../../base/memory-reservation.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import { LedgerCheckpoint } from '../parts/ledger-checkpoint.ts'
import { DELIVERED, NOT_DELIVERED, type ResponseContent } from '../exchange/upstream-attempt.ts'
import { reportsTokensAtEnd } from '../../pricing/metering.ts'
import type { MeteredResponse } from '../../pricing/settle-usage.ts'
import { decompressed, decompressedOrRaw } from '../../protocols/http/decompress.ts'
import { readBodyUsage } from '../../protocols/usage/reported-usage.ts'
import { ChunkReader, type EventSink, type StreamEvent } from '../../protocols/events/stream-event.ts'
import { ChunkList } from '../../proxy/http/chunk-list.ts'
import type { ResponseHead } from '../../proxy/upstream/response-head.ts'
import type { ResponseBody, ResponseStages, Stage } from './response-stream.ts'

const NOTHING = Buffer.alloc(0)
/** A longer body is not read, and its usage is unknown. */
const MAX_BODY_BYTES = 32 * 1024 * 1024
const MAX_ERROR_BYTES = 64 * 1024
/** Maximum bytes of a body to decompress synchronously. An error with the status 200 fits. */
const MAX_SYNC_DECOMPRESS_BYTES = 4 * 1024

/** @param content the settlement basis */
export function bodyStages(content: ResponseContent, all: readonly Stage[]): ResponseStages {
  const reader = new ChunkReader(sinkOf(all))
  return {
    all, isRead: false, reader, content, meter: null, filter: null, continuation: null, outlet: null, checkpoint: null,
    translateHeaders: null,
  }
}

/** @param stages each event goes to them in this order; the caller may add stages until the first event */
export function sinkOf(stages: readonly Stage[]): EventSink {
  return {
    event: event => {
      for (const stage of stages) stage.event(event)
    },
  }
}

/** A body that is not a stream. The client gets the body unchanged, and the end of the HTTP message is the end of the body. */
export abstract class WholeBody implements Stage, ResponseBody, ResponseContent {
  metered: MeteredResponse | null = NOT_DELIVERED
  encoding: string | null = null
  errorBody: Buffer | null = null
  readonly terminated = null
  readonly missingEnd = null
  readonly isFinished = false
  readonly atBoundary = false
  readonly edits = false
  readonly translateHeaders = null
  #hasBegun = false

  abstract begin(): void
  abstract event(piece: Pick<StreamEvent, 'buf'>): void
  abstract end(): void

  push(chunk: Buffer): Buffer {
    if (!this.#hasBegun) this.begin()
    this.#hasBegun = true
    this.event({ buf: chunk })
    return chunk
  }

  rest(): Buffer {
    return NOTHING
  }
}

/** Keeps a whole body for settlement, as long as `server.body_memory` has room. */
export class BodyCollector extends WholeBody {
  readonly #memory: MemoryReservation
  /** null = a partial body is not billed. */
  readonly #checkpoint: LedgerCheckpoint | null
  /** null = the body has ended, or memory has no room to keep the body. */
  #chunks: ChunkList | null = new ChunkList()
  #size = 0

  constructor(gateway: Gateway, exchange: Exchange, { coding }: ResponseHead) {
    super()
    this.encoding = coding
    this.#memory = new MemoryReservation(exchange.memory.reserveForResponse)
    this.#checkpoint = reportsTokensAtEnd(exchange.meteredEndpoint) ? new LedgerCheckpoint(gateway, exchange) : null
  }

  /** Records in a checkpoint that a body of unknown cost arrived, in case the process dies before the end of the body. */
  begin(): void {
    if (this.#checkpoint === null) return
    this.metered = DELIVERED
    this.#checkpoint.schedule()
  }

  event({ buf }: Pick<StreamEvent, 'buf'>): void {
    if (this.#chunks === null) return
    this.#size += buf.length
    if (this.#size > MAX_BODY_BYTES || !this.#memory.resize(this.#size)) this.#giveUp()
    else this.#chunks.push(buf)
  }

  end(): void {
    if (this.#chunks === null) return
    const received = this.#chunks.concat()
    // Free the pieces, because the joined body is a copy of them.
    this.#chunks = null
    const body = this.encoding === null ? null : this.#decompress(received, this.encoding)
    if (body !== null) this.encoding = null
    this.metered = { kind: 'body', body: body ?? received }
  }

  /** @returns null = too long to decompress synchronously, no memory, or malformed */
  #decompress(received: Buffer, encoding: string): Buffer | null {
    if (received.length > MAX_SYNC_DECOMPRESS_BYTES) return null
    const body = decompressed(received, encoding)
    return body !== null && body !== 'broken' && this.#memory.resize(this.#size + body.length) ? body : null
  }

  #giveUp(): void {
    this.#memory.resize(0)
    this.metered = DELIVERED
    this.#chunks = null
  }
}

/**
 * For a request whose field mask leaves out the usage. If the upstream sends usage, it has ignored the mask, and the response is settled as
 * without a mask. If no usage arrives, the response's cost is unknown, because the mask can have removed any part of the response.
 */
export class MaskedUsage implements Stage, ResponseContent {
  readonly errorBody = null
  metered: MeteredResponse = NOT_DELIVERED
  readonly #exchange: Exchange
  /** The settlement basis from the stage before this one. */
  readonly #content: ResponseContent

  constructor(exchange: Exchange, content: ResponseContent) {
    this.#exchange = exchange
    this.#content = content
  }

  get encoding(): string | null {
    return this.#content.encoding
  }

  begin(): void {
    this.metered = DELIVERED
  }

  event(): void {}

  end(): void {
    const { metered } = this.#content
    if (metered !== null && this.#reportsUsage(metered)) this.metered = metered
  }

  #reportsUsage(metered: MeteredResponse): boolean {
    if (metered.kind === 'none') return false
    const { usage } = this.#exchange.meteredEndpoint
    const reading = metered.kind === 'stream' ? metered.meter.reading() : readBodyUsage(usage, metered.body)
    return reading !== null && reading.usage.inputTokens !== null && reading.usage.outputTokens !== null
  }
}

/** Keeps the body of an upstream's error. */
export class ErrorReader extends WholeBody {
  override readonly metered = null
  readonly #coding: string | null
  readonly #chunks = new ChunkList()
  #size = 0

  constructor({ coding }: ResponseHead) {
    super()
    this.#coding = coding
  }

  begin(): void {}

  event({ buf }: Pick<StreamEvent, 'buf'>): void {
    this.#size += buf.length
    if (this.#size <= MAX_ERROR_BYTES) this.#chunks.push(buf)
    else this.#chunks.clear()
  }

  end(): void {
    this.errorBody ??= decompressedOrRaw(this.#chunks.concat(), this.#coding)
  }
}

/** Records only that a response arrived. */
export class DeliveryRecorder extends WholeBody {
  readonly #checkpoint: LedgerCheckpoint

  constructor(gateway: Gateway, exchange: Exchange) {
    super()
    this.#checkpoint = new LedgerCheckpoint(gateway, exchange)
  }

  begin(): void {
    this.#checkpoint.schedule()
    this.metered = DELIVERED
  }

  event(): void {}

  end(): void {}
}
