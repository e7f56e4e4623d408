import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../cli/command.ts'

t.test('generated pages are up to date', async t => {
  const { NODE_OPTIONS: _, ...env } = process.env
  const check = () => execFileSync(
    process.execPath, [join(ROOT, 'docs', 'generate', 'index.ts'), '--check'], { env },
  )
  t.doesNotThrow(check, 'npm run docs:generate updates the pages')
})
