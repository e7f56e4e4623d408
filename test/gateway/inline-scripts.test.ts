import { createHash } from 'node:crypto'
import t from 'tap'
import { inlineScripts } from '../../src/gateway/inline-scripts.ts'

const digest = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

t.test('inlineScripts returns one digest for each different inline script', async t => {
  const html = `<script>a()</script><script id="x">b()\n</script><p></p><script>a()</script>`
  t.strictSame(inlineScripts(html), [digest('a()'), digest('b()\n')])
})

t.test('inlineScripts returns no digest for script files', async t => {
  t.strictSame(inlineScripts('<script type="module" src="/assets/app.js"></script>'), [])
})
