import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '..', '..')

function installed(library: string): string {
  if (library === 'node') return process.versions.node
  const { version } = JSON.parse(readFileSync(join(root, 'node_modules', library, 'package.json'), 'utf8')) as { version: string }
  return version
}

// When this fails: read what changed in the library, see whether the patch is still needed and still does what it says,
// and write the new version into it.
for (const file of readdirSync(join(root, 'src/patches'))) {
  const text = readFileSync(join(root, 'src/patches', file), 'utf8')
  const sentence = /Written for [^.]*(?:\.\d[^.]*)*\./.exec(text)?.[0] ?? ''
  const versions = [...sentence.matchAll(/for ([\w-]+) (\d+\.\d+\.\d+)/g)].map(([, library, version]) => [library, version])
  t.test(`${file} was written for the installed versions`, async t => {
    t.not(versions.length, 0, 'the patch names a version')
    t.same(versions, versions.map(([library]) => [library, installed(library as string)]))
  })
}
