import t from 'tap'
import { openBrowser, walk } from '../browser.ts'
import { KEYS } from '../scene/people.ts'
import { startScene } from '../scene/scene.ts'

t.test('the pages of a key holder are accessible, fit the screen and cause no errors', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin } = await startScene(t)
  for (const path of ['/', '/billing', '/statement', '/logs', '/models', '/playground']) {
    await walk(t, browser, { origin, as: { key: KEYS.research }, path })
  }
})
