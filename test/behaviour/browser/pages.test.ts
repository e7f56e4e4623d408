import t from 'tap'
import { openBrowser, walk } from './browser.ts'
import { ADMIN } from './scene/people.ts'
import { startScene } from './scene/scene.ts'

t.test('pages for administrators', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin, requests } = await startScene(t)
  const paths = {
    keys: '/keys', audit: '/audit', models: '/models', routes: '/routes', configuration: '/configuration',
    playground: '/playground', logs: '/logs', request: `/logs/${requests.rescued}`,
  }
  for (const [shot, path] of Object.entries(paths)) {
    await walk(t, browser, { origin, as: ADMIN, path, shot })
  }
})
