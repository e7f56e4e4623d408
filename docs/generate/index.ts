// Generates the reference pages from the sources: npm run docs:generate.
// With --check it writes nothing, and fails if a page is not up to date.
import { readFileSync, writeFileSync } from 'node:fs'
import { pages } from './pages.ts'

const isCheck = process.argv.includes('--check')
for (const { file, text } of await pages()) {
  if (readIfThere(file) === text) continue
  const name = file.pathname.slice(new URL('../..', import.meta.url).pathname.length)
  if (isCheck) {
    console.error(`${name} is not up to date: npm run docs:generate`)
    process.exitCode = 1
  } else {
    writeFileSync(file, text)
    console.error(`wrote ${name}`)
  }
}

function readIfThere(file: URL): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return null
  }
}
