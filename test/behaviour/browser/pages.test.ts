import t from 'tap'
import { openBrowser, walk } from './browser.ts'
import { ADMIN } from './scene/people.ts'
import { startScene } from './scene/scene.ts'

t.test('further pages for administrators are accessible, fit the screen and cause no errors', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin, requests } = await startScene(t)
  for (const path of ['/routes', '/playground', `/logs/${requests.rescued}`]) {
    await walk(t, browser, { origin, as: ADMIN, path })
  }
})
