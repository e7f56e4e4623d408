import t from 'tap'
import { openBrowser, walk } from './browser.ts'
import { ADMIN } from './people.ts'
import { startScene } from './scene.ts'

t.test('the other pages', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin, requests } = await startScene(t)
  const ofReaders = {
    keys: '/keys', audit: '/audit', models: '/models', routes: '/routes', configuration: '/configuration',
    playground: '/playground', logs: '/logs', story: `/logs/${requests.rescued}`,
  }
  for (const [shot, path] of Object.entries(ofReaders)) {
    await walk(t, browser, { origin, as: ADMIN, path, shot })
  }
})
