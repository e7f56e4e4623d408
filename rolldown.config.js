// Bundles the gateway for the package: of its 265 modules and the 400 that they
// load from libraries a start would read each by itself, which takes longer than
// all that it does afterwards (bench/README.md, start.ts). Names are kept, so
// that a stack trace still tells where it was.

import { globSync, readFileSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Ajv } from 'ajv'
import { default as standalone } from 'ajv/dist/standalone/index.js'
import { readSchema } from './src/config/json-schema.ts'
import { RULES } from './src/config/validator.ts'

/** As deep as the sources, which name files of the package by `../../`. */
const FOLDER = 'dist/gateway'

/** What all parts of the bundle have in common. */
const common = {
  platform: 'node',
  // Tables of some MB, which are read when they are first asked, and what few configurations have.
  external: [/^@pydantic\/genai-prices/, /^gpt-tokenizer/, /^@opentelemetry\//, /^@grpc\//, 'prom-client', 'pg', 'ioredis', 'oauth4webapi', 'openid-client', /^jose\//, /^@azure\//, /^@aws-sdk\//, /^@smithy\//, 'google-auth-library', 'bufferutil', 'utf-8-validate'],
  plugins: [builtinsInPart(), undiciInPart(), responsesByName(), schemaCompiled(), licences()],
}

const output = {
  dir: FOLDER,
  format: 'esm',
  entryFileNames: '[name].js',
  chunkFileNames: '[name]-[hash].js',
  comments: false,
  // One character that takes more than a byte makes V8 keep a whole file at two bytes a character.
  charset: 'ascii',
}

/** Of each `*-thread.ts`, but not of the module that starts one. */
const threads = globSync('src/**/*-thread.ts', { exclude: file => file.endsWith('-in-thread.ts') })

/**
 * A start loads few files: node resolves each import between two of them, 430 once, for which V8 wakes its
 * optimizing compilers, 8 MB of its code. Nor does a thread share files with others, of which it would need a part.
 */
export default [
  {
    ...common,
    input: { main: 'src/cli/main.ts' },
    output: {
      ...output,
      cleanDir: true,
      codeSplitting: {
        groups: [
          // Without the entry: what is loaded while it awaits its command must not wait for the entry.
          { name: 'start', tags: ['$initial'], test: /(?<![\\/]src[\\/]cli[\\/]main\.ts)$/, priority: 1 },
          { name: 'serve', test: /[\\/]src[\\/](gateway[\\/]server|console[\\/]mount)\.ts$/ },
        ],
      },
    },
  },
  ...threads.map(file => ({
    ...common,
    input: { [basename(file, '.ts')]: file },
    output: { ...output, codeSplitting: false },
  })),
]

/**
 * What src/proxy has of undici, without what comes with its index
 * (fetch, WebSockets, caches, mocks): 1.4 MB of memory that nobody would use. A
 * name that is missing here fails the build.
 */
function undiciInPart() {
  return {
    name: 'undici-in-part',
    resolveId: { filter: { id: /^undici$/ }, handler: id => `\0${id}` },
    load: {
      filter: { id: /^\0undici$/ },
      handler: () => [
        "export { default as Client } from 'undici/lib/dispatcher/client.js'",
        "export { default as buildConnector } from 'undici/lib/core/connect.js'",
        "export { default as Agent } from 'undici/lib/dispatcher/agent.js'",
        "export { getGlobalDispatcher, setGlobalDispatcher } from 'undici/lib/global.js'",
      ].join('\n'),
    },
  }
}

/**
 * Node's own modules without the properties that it makes when they are first read: an import reads all
 * of them, and loads node's undici (`http.WebSocket`) and every certificate (`tls.rootCertificates`)
 * for it, a fifth of the start. Who wants one of these reads it from the module's default. A name that is
 * missing here fails the build.
 */
function builtinsInPart() {
  const prefix = '\0builtin:'
  return {
    name: 'builtins-in-part',
    resolveId: {
      filter: { id: /^(node:)?(crypto|fs|http|tls|util)$/ },
      handler: (id, _importer, { kind }) =>
        kind === 'import-statement' ? prefix + id.replace('node:', '') : null,
    },
    load: {
      filter: { id: /^\0builtin:/ },
      handler: id => {
        const name = `node:${id.slice(prefix.length)}`
        const properties = Object.entries(Object.getOwnPropertyDescriptors(process.getBuiltinModule(name)))
        const names = properties.flatMap(([key, { get }]) => (get === undefined ? [key] : []))
        return `const builtin = process.getBuiltinModule('${name}')
          export default builtin
          ${names.map(key => `export const ${key} = builtin.${key}`).join('\n')}`
      },
    },
  }
}

/**
 * `@fastify/compress` recognizes a `Response` of fetch by its name, as fastify itself does: the class would load node's undici
 * with the first response of the console. A check that has changed fails the build.
 */
function responsesByName() {
  const check = 'obj instanceof Response'
  return {
    name: 'responses-by-name',
    transform: {
      filter: { id: /@fastify[\\/]compress[\\/]lib[\\/]utils\.js$/ },
      handler: code => {
        if (!code.includes(check)) throw new Error(`@fastify/compress has no \`${check}\` any more`)
        return code.replace(check, "Object.prototype.toString.call(obj) === '[object Response]'")
      },
    },
  }
}

/** The validator of gateway.yaml as code, instead of the compiler that makes it at each start. */
function schemaCompiled() {
  const compiled = '\0gateway.schema'
  return {
    name: 'schema-compiled',
    resolveId: { filter: { id: /^\0gateway\.schema$/ }, handler: id => id },
    load: {
      filter: { id: /^\0gateway\.schema$|\/src\/config\/validator\.ts$/ },
      handler: id => {
        if (id !== compiled) {
          return `import validate from '${compiled}'\nexport const validator = () => validate`
        }
        const ajv = new Ajv({ ...RULES, code: { source: true } })
        return standalone.default(ajv, ajv.compile(readSchema()))
      },
    },
  }
}

/** The terms under which the libraries inside the bundle may be passed on: their own texts. */
function licences() {
  const packages = new Set()
  return {
    name: 'licences',
    generateBundle(_, bundle) {
      const modules = Object.values(bundle).flatMap(chunk => chunk.moduleIds ?? [])
      // Each part of the bundle writes the file anew, with the parts before it.
      for (const id of modules) packages.add(packageOf(id))
      packages.delete(undefined)
      const source = [...packages].sort().map(licence).join(`\n${'-'.repeat(80)}\n\n`)
      this.emitFile({ type: 'asset', fileName: 'LICENSES.txt', source })
    },
  }
}

/** The folder of the library that a module belongs to. */
function packageOf(id) {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0]
}

function licence(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const file = readdirSync(folder).find(entry => /^licen[cs]e/i.test(entry))
  if (file === undefined) return `${name} ${version}: ${license}\n`
  return `${name} ${version}: ${license}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`
}
