import { setTimeout as pause } from 'node:timers/promises'
import { serveThread } from '../../../src/base/threads/thread-server.ts'

/** What a test asks of the thread. */
export type EchoRequest = { echo: string } | { pauseMs: number } | 'throw' | 'exit'

serveThread<EchoRequest>(async request => {
  if (request === 'exit') process.exit(1)
  if (request === 'throw') throw Object.assign(new RangeError('too much'), { code: 'over', field: 'amount' })
  if ('echo' in request) return request.echo
  await pause(request.pauseMs)
  return request.pauseMs
})
