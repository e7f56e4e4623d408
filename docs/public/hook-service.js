// A hook of the Model Gateway in Node, without dependencies: refuses requests for models that a group may not use at night, and tags the
// others with their department. Start it with: HOOK_SECRET=... node hook-service.js
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

const { HOOK_SECRET: secret = '', PORT: port = '9090' } = process.env
if (secret === '') throw new Error('set HOOK_SECRET to the secret of the hook')
const MAX_BYTES = 8 * 1024 * 1024
const MAX_AGE_SECONDS = 5 * 60

/** The ids of the calls of the last minutes, with their time: a call that comes again within that time is a replay. */
const seen = new Map()

function isGenuine(headers, body) {
  const { 'webhook-id': id = '', 'webhook-timestamp': timestamp = '', 'webhook-signature': signature = '' } = headers
  const now = Date.now() / 1000
  if (!(Math.abs(now - Number(timestamp)) <= MAX_AGE_SECONDS)) return false
  const expected = Buffer.from(`v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest('base64')}`)
  const given = Buffer.from(signature)
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return false
  for (const [old, at] of seen) {
    if (now - at <= 2 * MAX_AGE_SECONDS) break
    seen.delete(old)
  }
  if (seen.has(id)) return false
  seen.set(id, now)
  return true
}

function decide({ on, request: { model, group } }) {
  if (on === 'response') return { action: 'allow' }
  if (group === 'trial' && model?.includes('opus')) return { action: 'refuse', message: `${model} is not part of the trial` }
  return { action: 'tag', tags: { department: group ?? 'none' } }
}

createServer(async (req, res) => {
  const chunks = []
  let bytes = 0
  for await (const chunk of req) {
    bytes += chunk.length
    if (bytes > MAX_BYTES) return void res.writeHead(413).end()
    chunks.push(chunk)
  }
  const body = Buffer.concat(chunks)
  if (!isGenuine(req.headers, body)) return void res.writeHead(401).end()
  res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(decide(JSON.parse(body))))
}).listen(Number(port), '127.0.0.1', function () {
  console.log(`listening on http://127.0.0.1:${this.address().port}`)
})
