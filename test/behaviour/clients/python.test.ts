import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { HAS_SDKS, PYTHON } from '../../support/python.ts'
import { chatVendor } from '../../support/vendors/chat.ts'
import { generateVendor } from '../../support/vendors/generate.ts'
import { messagesVendor } from '../../support/vendors/messages.ts'
import { responsesVendor } from '../../support/vendors/responses.ts'
import { USAGE, startVendor } from '../../support/vendors/vendor.ts'
import { openBooks, usedIn } from '../billing/books.ts'

const SCRIPTS = fileURLToPath(new URL('python', import.meta.url))
const skip = HAS_SDKS ? false : 'needs the Python SDKs: run test/clients/install (Debian: python3-venv)'

const VENDORS = [chatVendor, responsesVendor, messagesVendor, generateVendor]
const TOKENS = [USAGE.input, USAGE.cached, USAGE.output]
/** What a client reads of the two turns of a conversation. */
const TURNS = [
  { text: 'I look.', calls: [['look', { at: 1 }], ['look', { at: 2 }]], tokens: TOKENS },
  { text: 'Two birds.', calls: [], tokens: TOKENS },
]
const TEXTS = [['I look.'], ['Two birds.']]

/** For each SDK its kinds of requests, and the expected result, which is the same for all upstreams. */
const SDKS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  openai: { chat: TURNS, 'chat stream': TURNS, 'chat structured': 2, responses: TURNS, 'responses stream': TURNS, 'responses structured': 2 },
  anthropic: { messages: TURNS, 'messages stream': TURNS, 'tool runner': TURNS, structured: 2 },
  google_genai: { generate: TURNS, 'generate stream': TURNS, chat: TEXTS, structured: 2 },
}

for (const [sdk, ways] of Object.entries(SDKS)) {
  t.test(`the Python SDK ${sdk} works over every upstream protocol`, { skip }, async t => {
    const results: string[] = []
    const upstreams = await Promise.all(VENDORS.map(vendor => startVendor(t, vendor, conversation => {
      if (conversation.tools.length === 0) return { text: '{"birds":2}' }
      results.push(...conversation.results)
      if (conversation.rounds > 0) return { text: 'Two birds.' }
      return { thinking: 'Hm.', text: 'I look.', calls: [1, 2].map(at => ({ name: 'look', input: { at } })) }
    })))
    const models = VENDORS.map(({ protocol }) => protocol)
    const books = await openBooks(t, `
upstreams:
${VENDORS.map(({ protocol }, at) => `  ${protocol}: { url: "${upstreams[at]?.url}", speaks: [${protocol}] }`).join('\n')}
routes:
${models.map(model => `  - { model: ${model}, to: { upstream: ${model}, model: upstream-model } }`).join('\n')}`)
    const { stdout } = await promisify(execFile)(PYTHON, [`${SCRIPTS}/${sdk}_sdk.py`, books.gateway.url, KEY, ...models], {
      env: { PATH: process.env['PATH'], NO_PROXY: '*' },
    })
    const read = JSON.parse(stdout) as Record<string, unknown>
    for (const model of models) {
      for (const [way, expected] of Object.entries(ways)) t.strictSame(read[`${model} ${way}`], expected, `${way} over ${model}`)
    }
    t.strictSame(upstreams.flatMap(({ faults }) => faults), [], 'faults that the vendors find in the requests')
    t.strictSame(new Set(results.map(result => /a bird at \d 🐦/.exec(result)?.[0])), new Set(['a bird at 1 🐦', 'a bird at 2 🐦']))
    const rows = [...(await books.drain()).values()].filter(row => row.upstream !== null)
    t.equal(rows.length, upstreams.reduce((sum, { requests }) => sum + requests.length, 0), 'a row for each request')
    // Without refused requests: the tool runner of anthropic requests a thread first, which is refused.
    for (const row of rows.filter(({ status }) => status !== 400)) {
      const from = row.protocol as string
      const to = row.upstream as string
      t.match(row, { upstreamProtocol: to, status: 200, end: 'complete' })
      t.equal(row.attempts[0]?.translated, from === to ? undefined : `${from}->${to}`)
      t.match(usedIn(row), USAGE)
    }
  })
}
