import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'

const BIN = join(import.meta.dirname, '..', '..', 'bin')
const COMMAND = join(BIN, 'gateway.js')

t.test('a checkout runs its build while the build is newer than all sources', async t => {
  const root = t.testdir({ bin: {}, 'package.json': '{"type":"module"}' })
  cpSync(COMMAND, join(root, 'bin', 'gateway.js'))
  const write = (path: string, text: string, time: number) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
    utimesSync(join(root, path), time, time)
  }
  const settle = (time: number) => {
    for (const folder of ['src', 'src/cli', 'src/proxy']) utimesSync(join(root, folder), time, time)
  }
  // Without the options and the compile cache of the test runner, which change what the command loads.
  const { NODE_OPTIONS: _, NODE_COMPILE_CACHE: __, ...env } = process.env
  const runs = () =>
    execFileSync(process.execPath, [join(root, 'bin', 'gateway.js')], { env, encoding: 'utf8' }).trim()

  write('src/cli/main.ts', 'const text: string = "sources"\nconsole.log(text)\n', 1_000)
  write('src/proxy/relay.ts', '', 1_000)
  t.equal(runs(), 'sources', 'without a build the sources run')

  settle(1_000)
  write('dist/gateway/main.js', 'console.log("build")\n', 2_000)
  t.equal(runs(), 'build')

  write('src/proxy/relay.ts', '', 3_000)
  settle(1_000)
  t.equal(runs(), 'sources', 'the sources run if a source is newer than the build')

  write('src/proxy/relay.ts', '', 1_000)
  settle(3_000)
  t.equal(runs(), 'sources', 'the sources run if a source directory is newer than the build')

  const asks = "import module from 'node:module'\nconsole.log(module.getCompileCacheDir())\n"
  write('dist/gateway/main.js', asks, 4_000)
  t.ok(runs().startsWith(join(root, 'node_modules')), 'the compile cache is in the node_modules of the checkout')
  write('dist/gateway/main.js', 'console.log("build")\n', 2_000)

  settle(1_000)
  write('src/console/web/page.tsx', '', 3_000)
  for (const folder of ['src', 'src/console']) utimesSync(join(root, folder), 1_000, 1_000)
  t.equal(runs(), 'build', 'newer pages of the console do not matter')

  write('gateway.schema.json', '{}', 1_000)
  t.equal(runs(), 'build')
  write('gateway.schema.json', '{}', 3_000)
  t.equal(runs(), 'sources', 'the schema of the configuration is compiled into the build')
})

const skip = process.getuid?.() === 0 ? false : 'only root runs things as somebody else'

t.test('ensure-built keeps an existing build if a user who does not own the checkout runs it', { skip }, async t => {
  const scripts = { 'build:gateway': 'mkdir -p dist/gateway && touch dist/gateway/main.js' }
  const root = t.testdir({
    bin: {}, src: { 'main.ts': '' }, 'package.json': JSON.stringify({ type: 'module', scripts }),
  })
  cpSync(join(BIN, 'ensure-built.js'), join(root, 'bin', 'ensure-built.js'))
  const ensure = (user: { uid?: number }) =>
    spawnSync(process.execPath, [join(root, 'bin', 'ensure-built.js')], { encoding: 'utf8', ...user })
  t.match(ensure({}), { status: 0, stderr: /^Building dist\/gateway / })
  t.match(ensure({ uid: 65_534 }), { status: 0, stderr: '' })
})
