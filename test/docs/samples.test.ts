import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { loadConfig } from '../../src/config/load/load.ts'
import { ROOT } from '../cli/command.ts'
import { selfSigned } from '../support/certificate.ts'
import { PYTHON } from '../support/python.ts'
import { completed, valuesFor } from './fragment.ts'
import { Place } from './place.ts'
import { samplesOf } from './samples.ts'
import type { Saved, Trial } from './samples.ts'

/**
 * Every code sample of the documentation, tried: commands and programs against a
 * gateway with its example configuration, configurations by reading them. Addresses
 * are those of the texts, with the ports that were free.
 */
const DOCS = join(ROOT, 'docs')
const HAS_CURL = spawnSync('curl', ['--version']).status === 0
const HAS_SQLITE = spawnSync('sqlite3', ['--version']).status === 0
const HAS_NGINX = spawnSync('nginx', ['-v']).status === 0

const pages = [
  ...readdirSync(DOCS, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.md')).map(name => join(DOCS, name)),
  join(ROOT, 'README.md'),
]

for (const page of pages.sort()) {
  const samples = samplesOf(readFileSync(page, 'utf8'))
  if (samples.length === 0) continue
  t.test(page.slice(ROOT.length), async t => {
    const place = new Place(t)
    for (const sample of samples) {
      await t.test(`the sample works: line ${sample.line}, ${sample.language}`, async t => {
        if (sample.file !== null) place.save(sample.file, sample.text)
        await tryOut(t, place, sample)
      })
    }
  })
}

async function tryOut(t: Test, place: Place, { language, text, trial }: Saved): Promise<void> {
  switch (trial.how) {
    case 'none':
      return
    case 'json':
      t.doesNotThrow(() => JSON.parse(text) as unknown)
      return
    case 'config':
      readConfig(t, text)
      return
    case 'nginx':
      readNginx(t, text)
      return
    case 'run': {
      const missing = missingFor(language, text)
      if (missing !== null) {
        t.pass(missing, { skip: `needs ${missing}` })
        return
      }
      await runSample(t, place, language, text, trial)
    }
  }
}

function readConfig(t: Test, text: string): void {
  const file = join(t.testdir({}), 'gateway.yaml')
  const whole = completed(text)
  // The certificates of the samples do not exist here.
  writeFileSync(file, whole.replace(/^ +tls:\n(?: {4,}.*\n)+/m, '').replace(/^ +ca: .*\n/m, ''))
  t.doesNotThrow(() => loadConfig(file, valuesFor(whole)))
}

/** nginx checks the sample, with a certificate at the path of the sample and a port above 1023. */
function readNginx(t: Test, text: string): void {
  if (!HAS_NGINX) {
    t.pass('nginx', { skip: 'needs nginx' })
    return
  }
  const { cert, key } = selfSigned()
  const http = text.replace(/listen 443\b/, 'listen 127.0.0.1:48443')
  const files = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `${name}_temp_path ${name};`)
  const whole = `pid pid; error_log stderr; events {}\nhttp { access_log off; ${files.join(' ')}\n${http}}\n`
  const dir = t.testdir({ 'cert.pem': cert, 'key.pem': key, 'nginx.conf': whole })
  const { status, stderr } = spawnSync('nginx', ['-t', '-p', dir, '-c', join(dir, 'nginx.conf')])
  t.equal(status, 0, String(stderr))
}

/** What this machine lacks to run a sample; null = nothing. */
function missingFor(language: string, text: string): string | null {
  if (/^\s*curl /m.test(text) && !HAS_CURL) return 'curl'
  if (/^\s*sqlite3 /m.test(text) && !HAS_SQLITE) return 'sqlite3'
  if (language !== 'python') return null
  const modules = [...text.matchAll(/^(?:from|import) ([\w.]+)/gm)].map(([, name = '']) => name)
  const { status } = spawnSync(PYTHON, ['-c', modules.map(name => `import ${name}`).join('\n')])
  return status === 0 ? null : `Python with ${modules.join(', ')}`
}

async function runSample(
  t: Test, place: Place, language: string, text: string, { prints, fails }: Trial & { how: 'run' },
): Promise<void> {
  const { ok, output } = await place.run(language, text)
  t.equal(ok, !fails, output)
  if (prints !== null) t.match(output, prints)
}
