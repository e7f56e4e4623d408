/**
 * Loaded before the gateway (`node --import`): counts the calls of its process when its parent asks.
 * V8's precise coverage counts each call, and inlines none.
 */
import { Session } from 'node:inspector'

const session = new Session()
session.connect()
/** The session answers before the call returns. */
const post = (method, params) => {
  let result
  session.post(method, params, (error, value) => {
    if (error) throw error
    result = value
  })
  return result
}
post('Profiler.enable')
post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
const src = new URL('../../src/', import.meta.url).href
const takeCalls = () => post('Profiler.takePreciseCoverage').result.filter(({ url }) => url.startsWith(src))
  .flatMap(({ url, functions }) => functions.map(({ functionName, ranges: [{ startOffset, count }] }) => (
    { file: url.slice(src.length), name: functionName, offset: startOffset, calls: count }
  ))).filter(({ name, calls }) => name !== '' && calls > 0)
process.on('message', request => {
  if (request === 'calls') process.send({ calls: takeCalls() })
  if (request === 'turn') process.send({ turn: true })
})
// The channel alone keeps no process alive.
process.channel.unref()
