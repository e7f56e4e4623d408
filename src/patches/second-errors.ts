import type { AbstractConnector } from 'ioredis'

/**
 * Makes connections of ioredis ignore errors after the first one, the only one that ioredis listens to
 * (https://github.com/redis/ioredis/pull/962): an unhandled error ends the process. A TLS connection with a rejected certificate emits a
 * second error when the server responds (https://www.rfc-editor.org/rfc/rfc8446#section-6.2). Written for ioredis 5.11.1.
 * The option `Connector` does not reach connections to sentinels, so the class is changed. @param connector the class that ioredis exports
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
