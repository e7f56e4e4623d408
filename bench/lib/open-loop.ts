import { once } from 'node:events'
import * as net from 'node:net'
import { Worker } from 'node:worker_threads'
import { ResponseEnd } from './load.ts'
import type { Load } from './load.ts'

/** Milliseconds between two looks at what is due: no request begins later than that, and few at once. */
const MIN_TICK_MS = 0.2

/** Milliseconds at the start that count for nobody: connections are made, to the proxy and behind it. */
const WARM_UP_MS = 500

/**
 * Requests at a fixed rate, each on a connection that is free or new.
 *
 * @param rate requests per second
 * @param warmUpMs in which requests do not count
 * @returns milliseconds from when each was due to its first byte
 */
export async function firstByteTimes(
  port: number, load: Load, rate: number, seconds: number, warmUpMs = WARM_UP_MS,
): Promise<number[]> {
  const times: number[] = []
  const free: Connection[] = []
  const open = new Set<Connection>()
  const settling = Math.floor((rate * warmUpMs) / 1000)
  const total = settling + Math.floor(rate * seconds)
  const running: Promise<void>[] = []
  let sent = 0
  let begin = Number.NaN
  await everyMs(Math.max(MIN_TICK_MS, 1000 / rate), tick => {
    if (sent === 0) begin = tick
    // A tick is due when a request is: what is rounded here is a sum of such steps.
    const due = Math.min(total, Math.floor(((tick - begin) / 1000) * rate + 0.001) + 1)
    for (; sent < due; sent++) {
      const connection = free.pop() ?? new Connection(port)
      open.add(connection)
      const dueAt = begin + (sent / rate) * 1000
      const counts = sent >= settling
      running.push(connection.send(load.bytes).then(firstByteAt => {
        if (counts) times.push(firstByteAt - dueAt)
        free.push(connection)
      }))
    }
    return sent < total
  })
  await Promise.all(running)
  for (const connection of open) connection.close()
  return times
}

/** Calls back at the pace of a timer thread, with the due time, until the callback returns false. */
async function everyMs(ms: number, call: (dueAt: number) => boolean): Promise<void> {
  const cell = new Int32Array(new SharedArrayBuffer(4))
  const metronome = new Worker(new URL('metronome.mjs', import.meta.url), {
    workerData: { cell, everyMs: ms },
  })
  metronome.on('message', (dueAt: number) => {
    if (!call(dueAt)) Atomics.store(cell, 0, 1)
  })
  await once(metronome, 'exit')
}

/** Milliseconds of the system's monotonic clock. */
function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

class Connection {
  readonly #socket: net.Socket
  readonly #end = new ResponseEnd()
  #firstByteAt = 0
  #pending: { resolve: (at: number) => void; reject: (error: Error) => void } | null = null

  constructor(port: number) {
    this.#socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
    this.#socket.on('error', error => this.#pending?.reject(error))
    this.#socket.on(
      'close', () => this.#pending?.reject(new Error('the connection ended before the response')),
    )
    this.#socket.on('data', data => {
      if (this.#firstByteAt === 0) this.#firstByteAt = monotonicMs()
      if (!this.#end.add(data.toString('latin1'))) return
      const answered = this.#pending
      this.#pending = null
      answered?.resolve(this.#firstByteAt)
    })
  }

  /** @returns when the first byte came; settles when the response is whole */
  send(bytes: Buffer): Promise<number> {
    this.#firstByteAt = 0
    this.#socket.write(bytes)
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject }
    })
  }

  close(): void {
    this.#socket.destroy()
  }
}

/** So many streams side by side. @returns milliseconds from the sending of each chunk to its arrival */
export async function chunkDelays(port: number, load: Load, streams: number): Promise<number[]> {
  const delays: number[] = []
  await Promise.all(Array.from({ length: streams }, () => new Promise<void>((resolve, reject) => {
    const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
    const end = new ResponseEnd()
    socket.on('error', reject)
    socket.on('data', data => {
      const now = Number(process.hrtime.bigint() / 1000n)
      const text = data.toString('latin1')
      for (const [, sent] of text.matchAll(/@(\d+)@/g)) delays.push((now - Number(sent)) / 1000)
      if (!end.add(text)) return
      socket.destroy()
      resolve()
    })
    socket.write(load.bytes)
  })))
  return delays
}
