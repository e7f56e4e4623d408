import { GatewayError, asGatewayError } from '../../base/errors.ts'
import type { Clock } from '../../base/clock.ts'
import { wantsEventStream, type Exchange } from '../exchange/exchange.ts'
import type { ClientFormat } from '../../protocols/endpoint/protocol.ts'
import type { EventReader, StreamEvent } from '../../protocols/events/stream-event.ts'
import { createTranslator, responseTranslation, type ResponseTranslation, type TranslatedAttempt } from '../../protocols/translate.ts'
import type { StreamTranslator } from '../../protocols/neutral/translate/translate-response.ts'
import { invalidEvent } from './classification.ts'
import type { ContinuationStage, OnStreamFault } from './continuation-stage.ts'
import type { Outlet, Stage } from './response-stream.ts'

const NOTHING = Buffer.alloc(0)
const DONE = '[DONE]'
/** Milliseconds without an event for the client after which the next bytes of the upstream become a ping. */
const PING_AFTER = 10_000

export function translationOf(exchange: Exchange, translated: TranslatedAttempt): ResponseTranslation {
  const { id, request: { model }, startedWall } = exchange
  return responseTranslation(translated, { id, model, startedWall, isEventStream: wantsEventStream(exchange), reserveMemory: exchange.memory.reserveForResponse })
}

export interface TranslationStageOptions {
  readonly translation: ResponseTranslation
  readonly format: ClientFormat
  readonly clock: Clock
  /** Called in a microtask after an event that cannot be translated. */
  readonly onStreamFault: OnStreamFault
  /** Reader and stage that follow the translated stream for a continuation; null = not needed. */
  readonly continued: { readonly reader: EventReader, readonly stage: ContinuationStage } | null
}

export class TranslationStage implements Stage, Outlet {
  hasFailed = false
  readonly #options: TranslationStageOptions
  readonly #translator: StreamTranslator
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
    if (this.#translator.isOver) return
    const { value } = event
    if (value === undefined && event.text !== DONE) {
      // Ignore an incomplete last event. An event that lacks only its blank line is complete.
      if (!event.terminated) return
      if (event.oversize) this.#fail(new GatewayError('upstream_invalid', 'the upstream sent an event that is too long to be translated'))
      else if (event.text !== '') this.#fail(invalidEvent(event.text))
      return
    }
    this.#translate(() => this.#translator.event(event.buf.toString('latin1', event.nameStart, event.nameEnd), value))
  }

  /** @returns the client's events; a ping, if the upstream's bytes have made no event for the client for `PING_AFTER` */
  take(): Buffer {
    const { clock, format, translation } = this.#options
    const { isOver, hasText } = this.#translator
    if (!hasText && (isOver || !translation.context.isEventStream || clock.monotonic() - this.#lastEventAt < PING_AFTER)) return NOTHING
    this.#lastEventAt = clock.monotonic()
    return this.#passOn(hasText ? this.#translator.take() : Buffer.from(format.keepAlive))
  }

  rest(): Buffer {
    if (!this.#translator.isOver) this.#translate(() => this.#translator.end())
    const bytes = this.#passOn(this.#translator.take())
    const { continued } = this.#options
    if (continued === null) return bytes
    continued.stage.close()
    continued.reader.end()
    return Buffer.concat([bytes, continued.stage.rest()])
  }

  #passOn(bytes: Buffer): Buffer {
    const { continued } = this.#options
    if (continued === null || bytes.length === 0) return bytes
    continued.reader.push(bytes)
    return continued.stage.take(bytes)
  }

  /** Reports an error of the translator, so that the client's response does not look complete. */
  #translate(step: () => void): void {
    try {
      step()
    } catch (thrown) {
      this.#fail(asGatewayError(thrown))
    }
  }

  #fail(error: GatewayError): void {
    this.#translator.stop()
    this.hasFailed = true
    queueMicrotask(() => this.#options.onStreamFault(error))
  }
}
