import type { Test } from 'tap'
import { STREAM_HEAD, chunk, startWireUpstream } from '../support/wire.ts'

/** An upstream that sends each event only after the test has acknowledged the previous event. */
export async function acknowledgedUpstream(t: Test, events: number) {
  const acknowledge: (() => void)[] = []
  const acks = Array.from({ length: events }, () => new Promise<void>(resolve => acknowledge.push(resolve)))
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD)
    for (const [i, ack] of acks.entries()) {
      wire.send(chunk(`data: {"n":${i}}\n\n`))
      await ack
    }
    wire.send(`${chunk('data: [DONE]\n\n')}0\r\n\r\n`)
  })
  return { upstream, acknowledge }
}
