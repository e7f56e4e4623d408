import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../cli/command.ts'

const DOCS = join(ROOT, 'docs')

t.test('code blocks of the documentation are fenced', async t => {
  const pages = readdirSync(DOCS, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.md'))
  for (const page of [...pages.map(name => join(DOCS, name)), join(ROOT, 'bench/README.md')]) {
    const text = readFileSync(page, 'utf8').replaceAll(/^```[^]*?^```$/gm, '')
    // An indented block after a list item is a part of the item, not a code block.
    t.notMatch(text, /^[^\s*-].*\n\n {4}\S/m, page)
  }
})
