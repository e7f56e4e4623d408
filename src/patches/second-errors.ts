import type { AbstractConnector } from 'ioredis'

/**
 * Makes every connection of ioredis ignore errors after the first one. ioredis listens only to one
 * (https://github.com/redis/ioredis/pull/962), and a TLS connection whose certificate was rejected emits a second one
 * when the server responds to that: https://www.rfc-editor.org/rfc/rfc8446#section-6.2. Without a listener it would end
 * the process. The option `Connector` does not reach the connections to sentinels, so the class itself is changed.
 * Written for ioredis 5.11.1.
 *
 * @param connector the class that ioredis exports
 */
export function ignoreSecondErrors({ prototype }: typeof AbstractConnector): void {
  if (Object.hasOwn(prototype, 'stream')) return
  const streams = new WeakMap<object, Stream>()
  Object.defineProperty(prototype, 'stream', {
    get(this: object) {
      return streams.get(this)
    },
    set(this: object, stream: Stream) {
      stream.on('error', () => undefined)
      streams.set(this, stream)
    },
  })
}

interface Stream {
  on(event: 'error', listener: () => void): void
}
