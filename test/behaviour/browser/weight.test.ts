import t from 'tap'
import { go, openBrowser, visit } from './browser.ts'
import { ADMIN } from './scene/people.ts'
import { startScene } from './scene/scene.ts'

/** Bytes on the wire of the first load of a page, all files and responses of the API together. */
const MAX_BYTES = 250_000

const PAGES = [
  '/', '/billing', '/statement', '/logs', '/upstreams', '/upstreams/openai', '/keys', '/models', '/routes', '/configuration',
  '/audit', '/playground',
]

t.test('the first load of each page transfers less than 250 kB', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin } = await startScene(t)
  for (const path of PAGES) {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    const sizes: Promise<number>[] = []
    page.on('requestfinished', request => {
      sizes.push(request.sizes().then(({ responseBodySize, responseHeadersSize }) => responseBodySize + responseHeadersSize, () => 0))
    })
    await go(page, path)
    await page.waitForLoadState('networkidle')
    const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
    await page.close()
    t.ok(bytes > 20_000 && bytes < MAX_BYTES, `${path}: ${Math.round(bytes / 1000)} kB`)
  }
})
