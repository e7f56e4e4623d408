import { asGatewayError } from '../../base/errors.ts'
import type { Clock } from '../../base/clock.ts'
import type { ResponseContent } from '../../context/upstream-attempt.ts'
import { decompressedOrRaw } from '../../protocols/shared/decompress.ts'
import type { ClientFormat } from '../../protocols/shared/protocol.ts'
import { parseJson } from '../../protocols/shared/stream-event.ts'
import type { EventReader, StreamEvent } from '../../protocols/shared/stream-event.ts'
import { createTranslator, translateError, translateWhole } from '../../protocols/translate.ts'
import type { ResponseTranslation, StreamTranslator } from '../../protocols/translate.ts'
import type { ContinuationStage } from './continuation-stage.ts'
import type { Outlet, Stage } from './response-stream.ts'

const NOTHING = Buffer.alloc(0)
const DONE = '[DONE]'
/** Milliseconds without an event of the client's, after which one shows that the upstream is alive. */
const PING_AFTER = 10_000

export interface TranslationStageOptions {
  readonly translation: ResponseTranslation
  readonly format: ClientFormat
  readonly clock: Clock
  /** Splits what the client gets into events for the continuation; null = none follows. */
  readonly continued: { readonly reader: EventReader, readonly stage: ContinuationStage } | null
}

/** Translates a stream: it takes the upstream's events, and gives the client its own. */
export class TranslationStage implements Stage, Outlet {
  readonly #options: TranslationStageOptions
  readonly #translator: StreamTranslator
  /** Whole events of the client's that were not taken. */
  #pending = ''
  #lastEventAt: number

  constructor(options: TranslationStageOptions) {
    this.#options = options
    this.#translator = createTranslator(options.translation)
    this.#lastEventAt = options.clock.monotonic()
  }

  get isOver(): boolean {
    return this.#translator.isOver
  }

  event(event: StreamEvent): void {
    if (this.#translator.isOver || !event.terminated) return
    const { value } = event
    if (value === undefined && event.text !== DONE) return
    this.#translate(() => this.#translator.event(event.buf.toString('latin1', event.nameStart, event.nameEnd), value))
  }

  /** The upstream has sent bytes: it is alive, also where they make no event for the client. */
  take(): Buffer {
    const { clock, format } = this.#options
    if (this.#pending === '') {
      if (this.#translator.isOver || !this.#options.translation.context.isEventStream || clock.monotonic() - this.#lastEventAt < PING_AFTER) return NOTHING
      this.#pending = format.keepAlive
    }
    this.#lastEventAt = clock.monotonic()
    return this.#passOn()
  }

  rest(): Buffer {
    if (!this.#translator.isOver) this.#translate(() => this.#translator.end())
    const bytes = this.#passOn()
    const { continued } = this.#options
    if (continued === null) return bytes
    continued.stage.close()
    continued.reader.end()
    return Buffer.concat([bytes, continued.stage.rest()])
  }

  #passOn(): Buffer {
    const bytes = Buffer.from(this.#pending)
    this.#pending = ''
    const { continued } = this.#options
    if (continued === null || bytes.length === 0) return bytes
    continued.reader.push(bytes)
    return continued.stage.take(bytes)
  }

  /** A response that cannot be translated must not end the process, nor look whole. */
  #translate(step: () => string): void {
    try {
      this.#pending += step()
    } catch (thrown) {
      this.#translator.stop()
      this.#pending += this.#options.format.streamError(asGatewayError(thrown), this.#options.translation.context.requestId)
    }
  }
}

/** Translates a whole response, or an error, once all of it came. */
export class TranslatedBody implements Stage, Outlet {
  readonly #content: ResponseContent
  readonly #translate: (body: Buffer) => string

  /** @param content keeps the body @param translate makes the client's of the upstream's */
  constructor(content: ResponseContent, translate: (body: Buffer) => string) {
    this.#content = content
    this.#translate = translate
  }

  event(): void {
    // The stage that keeps the body reads it.
  }

  take(): Buffer {
    return NOTHING
  }

  rest(): Buffer {
    const { metered, errorBody, encoding } = this.#content
    const kept = metered?.kind === 'body' ? metered.body : errorBody ?? NOTHING
    return Buffer.from(this.#translate(encoding === null ? kept : decompressedOrRaw(kept, encoding)))
  }
}

/** The whole response of an upstream as the client reads it. */
export function translatedWhole(translation: ResponseTranslation, format: ClientFormat): (body: Buffer) => string {
  return body => {
    try {
      return translateWhole(translation, parseJson(body.toString('utf8')))
    } catch (thrown) {
      return format.errorBody(asGatewayError(thrown), translation.context.requestId)
    }
  }
}

/** An upstream's error as the client reads it. */
export function translatedError({ attempt, context }: ResponseTranslation, status: number): (body: Buffer) => string {
  return body => translateError(attempt, status, body, context.requestId)
}
