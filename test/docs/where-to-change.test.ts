import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'

const ROOT = join(import.meta.dirname, '../..')

interface Change {
  /** The row of "Where to change what". */
  readonly row: string
  /** Adds files, by name. */
  readonly files?: Readonly<Record<string, string>>
  /** Replacements for each file: the first text by the second. */
  readonly edits: Readonly<Record<string, readonly (readonly [found: string, replacement: string])[]>>
}

const CHANGES: readonly Change[] = [
  {
    row: 'add a configuration key',
    edits: {
      'gateway.schema.json': [['"bodies": {', '"color": { "description": "Colours.", "type": "boolean" },\n        "bodies": {']],
      'src/config/types.ts': [['export interface LogConfig {', 'export interface LogConfig {\n  readonly color: boolean']],
      'src/config/sections/log.ts': [["return { level: raw.log?.level ?? 'info', bodies }", "return { level: raw.log?.level ?? 'info', bodies, color: raw.log?.color ?? false }"]],
    },
  },
  {
    row: 'add a command',
    files: {
      'src/cli/hello.ts': `import { Command } from 'commander'

export function helloCommand(): Command {
  return new Command('hello').description('Say hello.').action(() => void process.stdout.write('hello\\n'))
}
`,
    },
    edits: {
      'src/cli/program.ts': [['  const commands = [', "  const commands = [helloCommand,"]],
    },
  },
  {
    row: 'add a protocol',
    files: {
      'src/protocols/poem/index.ts': `import { OPENAI_FORMAT } from '../endpoint/openai-format.ts'
import type { ClientFormat, Protocol } from '../endpoint/protocol.ts'
import { classifyPoem, poemPaths } from './paths.ts'

const format: ClientFormat = { ...OPENAI_FORMAT, protocol: 'poem' }

export const POEM: Protocol = {
  name: 'poem', format, paths: poemPaths(format), classify: classifyPoem, freeWrites: /^\\/v1\\/poems\\/drafts$/,
}
`,
      'src/protocols/poem/paths.ts': `import { defineEndpoint, withPathModel } from '../endpoint/classified.ts'
import { OPENAI_FORMAT } from '../endpoint/openai-format.ts'
import type { Classified, ClientFormat, KnownPath } from '../endpoint/protocol.ts'

export function poemPaths(format: ClientFormat): readonly KnownPath[] {
  return [['/v1/poems', defineEndpoint({ name: 'poems', format, modelRequired: true })]]
}

const HAIKU = defineEndpoint({ name: 'haiku', format: { ...OPENAI_FORMAT, protocol: 'poem' }, modelIn: 'path' })

export function classifyPoem(path: string, plain: string): Classified | null {
  return plain.startsWith('/v1/haiku/') ? withPathModel(HAIKU, path, '/v1/haiku/'.length, path.length) : null
}
`,
    },
    edits: {
      'src/protocols/index.ts': [['GENERATE, CONVERSE]', 'GENERATE, CONVERSE, POEM]']],
      '.dependency-cruiser.mjs': [["'protocols/converse',", "'protocols/converse', 'protocols/poem',"]],
    },
  },
  {
    row: 'add a cloud provider',
    files: {
      'src/providers/nimbus/nimbus.ts': `import type { Provider } from '../shared/provider.ts'

export function nimbus(): Provider {
  return { addressOf: ({ path, query }) => ({ path: \`/nimbus\${path}\`, query }) }
}
`,
    },
    edits: {
      'gateway.schema.json': [['"bedrock": {', '"nimbus": {\n            "description": "Nimbus.",\n            "type": "object",\n            "additionalProperties": false,\n            "properties": { "endpoint": { "type": "string" } }\n          },\n          "bedrock": {']],
      'src/config/types.ts': [['export type ProviderConfig = ', "export type ProviderConfig = { readonly kind: 'nimbus' } | "]],
      'src/config/sections/cloud-upstream.ts': [["PROVIDER_KEYS = ['azure'", "PROVIDER_KEYS = ['nimbus', 'azure'"], [
        '  if (raw.bedrock !== undefined) {',
        `  if (raw.nimbus !== undefined) {
    return { provider: { kind: 'nimbus' }, url: endpointOf(raw.nimbus.endpoint, [...path, 'nimbus'], findings), speaks: ['chat'] }
  }
  if (raw.bedrock !== undefined) {`,
      ]],
      'src/providers/index.ts': [["    case 'bedrock':", "    case 'nimbus':\n      return nimbus()\n    case 'bedrock':"]],
      'src/providers/probe.ts': [["const DEFAULT_MODELS = { ", "const DEFAULT_MODELS = { nimbus: 'n-1', "]],
    },
  },
]

/** Imports that the edits need. */
const IMPORTS: Readonly<Record<string, string>> = {
  'src/cli/program.ts': "import { helloCommand } from './hello.ts'",
  'src/protocols/index.ts': "import { POEM } from './poem/index.ts'",
  'src/providers/index.ts': "import { nimbus } from './nimbus/nimbus.ts'",
}

const CONFIG = `
auth: open
log: { color: true }
upstreams:
  cloud: { nimbus: { endpoint: "https://nimbus.example.com" } }
  plain: { url: "http://127.0.0.1:9" }
  poet: { url: "http://127.0.0.1:8" }
routes:
  - { model: ode, to: poet }
  - { model: n-1, to: cloud }
  - { model: "*", to: plain }
`

t.test('the table "Where to change what" names all files of each sample change', t => {
  const table = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')
  for (const { row, files = {}, edits } of CHANGES) {
    const line = table.split('\n').find(each => each.startsWith(`| ${row} |`)) ?? ''
    const changed = [...Object.keys(files).map(file => (file.startsWith('src/cli') ? dirname(file) : dirname(dirname(file)))), ...Object.keys(edits)]
    t.strictSame(changed.filter(name => ![name, dirname(name)].some(each => line.includes(`\`${each}\``))), [], row)
  }
  t.end()
})

t.test('the sources compile with the sample changes, and the added features work', t => {
  const copy = t.testdir({ 'gateway.yaml': CONFIG })
  for (const name of ['src', 'docs/generate', 'gateway.schema.json', 'package.json', 'tsconfig.json', '.dependency-cruiser.mjs', '.ci']) {
    cpSync(join(ROOT, name), join(copy, name), { recursive: true, filter: file => !/console\/web(\/|$)/.test(file) })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  for (const { files = {}, edits } of CHANGES) {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(copy, name)), { recursive: true })
      writeFileSync(join(copy, name), text)
    }
    for (const [name, pairs] of Object.entries(edits)) {
      let text = readFileSync(join(copy, name), 'utf8')
      for (const [found, replacement] of pairs) {
        t.equal(text.includes(found), true, `${name} has ${found}`)
        text = text.replace(found, () => replacement)
      }
      writeFileSync(join(copy, name), name in IMPORTS ? `${IMPORTS[name]}\n${text}` : text)
    }
  }
  const run = (...args: string[]) => {
    const { stdout, stderr, status } = spawnSync(process.execPath, args, { cwd: copy, encoding: 'utf8', env: { PATH: process.env['PATH'] } })
    return { output: stdout + stderr, status }
  }
  execFileSync(process.execPath, ['-e', `import('./docs/generate/raw-types.ts').then(({ rawTypes }) =>
    require('node:fs').writeFileSync('src/config/raw-schema.ts', rawTypes()))`], { cwd: copy })
  writeFileSync(join(copy, 'tsconfig.src.json'), JSON.stringify({ extends: './tsconfig.json', include: ['src'] }))
  t.strictSame(run(join(ROOT, 'node_modules/typescript/lib/tsc.js'), '--noEmit', '--project', 'tsconfig.src.json'), { output: '', status: 0 })
  t.strictSame(run('src/cli/main.ts', 'hello'), { output: 'hello\n', status: 0 })
  t.equal(run('src/cli/main.ts', 'check').status, 0)
  for (const path of ['/v1/poems', '/v1/haiku/ode', '/openai/deployments/ode/poems', '/v1/projects/p/locations/l/endpoints/ode/poems']) {
    t.match(run('src/cli/main.ts', 'explain', '--path', path, '--model', 'ode').output, /^endpoint +(?:poems|haiku) [^]*127\.0\.0\.1:8/m, path)
  }
  t.strictSame(run('.ci/protocol-names.ts'), { output: '', status: 0 })
  t.match(run('src/cli/main.ts', 'explain', '--path', '/v1/chat/completions', '--model', 'n-1').output, /nimbus\.example\.com/)
  t.end()
})
