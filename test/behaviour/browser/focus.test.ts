import { dirname, join } from 'node:path'
import t from 'tap'
import { row } from '../../ledger/rows.ts'
import { PASSWORD, startConsole, YAML } from '../console/console.ts'
import { go, openBrowser, visit } from './browser.ts'
import { tabThrough } from './operator.ts'
import { writeRows } from './scene/past.ts'

const PAGES = [
  '/', '/billing', '/statement', '/statement?key=team-03', '/logs', '/upstreams', '/upstreams/sim', '/keys', '/models', '/routes',
  '/configuration', '/audit', '/playground',
]
/** More keys than a screen shows. */
const KEYS = Array.from({ length: 45 }, (_, n) => `team-${String(n).padStart(2, '0')}`)

t.test('Tab reaches the controls of each page in visual order, and the focus is always visible', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const keys = KEYS.map(name => `{ name: ${name}, key: sk-${name}-0123456789abcdef, limits: { budget: { usd: 5, per: month } } }`)
  const gateway = await startConsole(t, YAML.replace(/^keys: .*$/m, `keys: [${keys.join(', ')}]`))
  const startedAt = Date.now() - 60_000
  await writeRows(join(dirname(gateway.file), 'data/ledger.db'), KEYS.map((key, n) => row(String(n), { startedAt, key })))

  for (const width of [1280, 390] as const) {
    const { page } = await visit(t, browser, {
      origin: gateway.console, as: { name: 'ops', password: PASSWORD }, look: { scheme: 'light', width },
    })
    for (const path of PAGES) {
      await go(page, path)
      const { stops, faults } = await tabThrough(page)
      t.strictSame(faults, [], `${path}, ${width} px, ${stops} stops`)
    }
  }
})
