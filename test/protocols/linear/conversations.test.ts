import t from 'tap'
import { GatewayError } from '../../../src/base/errors.ts'
import { PROTOCOLS } from '../../../src/protocols/index.ts'
import { requestBetween } from '../../support/translation.ts'
import { isQuadratic } from './growth.ts'
import { REQUESTS } from './request-samples.ts'

const ENTRIES = 6000
/** Maximum characters of all copies, because more garbage would take long to collect. */
const MAX_TEXT = 1_500_000
/** Names of the list with the conversation, in any protocol. */
const LISTS = ['messages', 'input', 'contents'] as const
const UPSTREAMS = PROTOCOLS.filter(({ translation }) => translation?.upstream).map(({ name }) => name)

// Copies of a single entry, because targets join successive messages; copies of a conversation alternate roles.
for (const [from, sample] of Object.entries(REQUESTS)) {
  const list = LISTS.find(name => Array.isArray(sample[name])) as string
  const conversation = sample[list] as readonly unknown[]
  t.test(`the time to translate one entry of ${from} many times in a row grows linearly`, async t => {
    for (const to of UPSTREAMS.filter(name => name !== from)) {
      const quadratic = conversation.filter(entry => isQuadratic(entries => {
        const body = { ...sample, [list]: [...conversation, ...Array.from({ length: entries }, () => entry), ...conversation] }
        return () => attempt(() => requestBetween(from, to, body))
      }, Math.min(ENTRIES, Math.ceil(MAX_TEXT / JSON.stringify(entry).length))))
      t.strictSame(quadratic, [], to)
    }
  })
}

function attempt(run: () => unknown): void {
  try {
    run()
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
  }
}
