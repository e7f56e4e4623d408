import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { KeyFile, keyFileOf } from '../../src/auth/key-file.ts'
import { fileIdentity } from '../../src/base/files/file-exists.ts'
import { openFile, quarantineFile } from '../../src/ledger/file/ledger-file.ts'
import { acquireLock } from '../../src/ledger/file/lock.ts'
import { gateway, listening } from '../cli/command.ts'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { PASSWORD, YAML, startConsole } from '../behaviour/console/console.ts'

const CHAT = {
  method: 'POST', headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
  body: '{"model":"demo","messages":[{"role":"user","content":"Hello"}]}',
}
/** All features that write files. The webhook is unreachable, so that alerts are saved. */
const FULL = `${YAML}
log: { bodies: [{ key: "*", keep: 1d }] }
alerts: { webhook: { url: "http://127.0.0.1:1/" } }
telemetry: { prometheus: { listen: 127.0.0.1:0 } }
`

/** @returns files and directories with another mode than 0600 and 0700, except gateway.yaml, which the test creates */
function openToOthers(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true }).flatMap(entry => {
    const path = join(entry.parentPath, entry.name)
    const stats = statSync(path, { throwIfNoEntry: false })
    if (stats === undefined || entry.name === 'gateway.yaml') return []
    const mode = stats.mode & 0o777
    return mode === (stats.isDirectory() ? 0o700 : 0o600) ? [] : [`${path.slice(directory.length + 1)} ${mode.toString(8)}`]
  })
}

function setMask(t: Test, mask: number): void {
  const before = process.umask(mask)
  t.teardown(() => process.umask(before))
}

/** A folder with a short path, because the path of the control socket can have at most 100 bytes. */
function folder(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'files-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

for (const mask of [0o022, 0o000]) {
  t.test(`with all features and umask ${mask.toString(8)}, only the user of the gateway can read the files of the gateway`, async t => {
    setMask(t, mask)
    const running = await startConsole(t, FULL)
    const data = join(dirname(running.file), 'data')
    using _keys = new KeyFile(keyFileOf(join(data, 'ledger.db')))
    const ops = await running.login({ name: 'ops', password: PASSWORD })
    t.match(await ops.ask('/keys', { method: 'POST', body: { name: 'made' } }), { status: 201 })
    await (await fetch(`${running.url}/v1/chat/completions`, CHAT)).text()
    t.equal((await running.change(`${FULL}log: 1\n`)).applied, false)
    t.strictSame(openToOthers(dirname(data)), [])
    await running.close()
    const names = readdirSync(data)
    for (const name of ['ledger.db', 'keys.db', 'console.db', 'bodies.db', 'alerts.json']) t.ok(names.includes(name), name)
    t.strictSame(openToOthers(dirname(data)), [])
  })
}

t.test('only the user can read the files and the socket of a gateway process and the files of commands', { timeout: 120_000 }, async t => {
  setMask(t, 0)
  const cwd = folder(t)
  const litellm = 'model_list: [{ model_name: m, litellm_params: { model: openai/m } }]\n'
  writeFileSync(join(cwd, 'litellm.yaml'), litellm, { mode: 0o600 })
  t.match(await gateway(['init', '--config', 'new.yaml'], { cwd }), { code: 0 })
  t.match(await gateway(['import', 'litellm', 'litellm.yaml', '--output', 'imported.yaml'], { cwd }), { code: 0 })
  writeFileSync(join(cwd, 'gateway.yaml'), FULL)
  t.match(await gateway(['keys', 'create', '--name', 'made'], { cwd }), { code: 0 })
  const running = await listening(t, ['serve'], { cwd })
  await (await fetch(`${running.base}/v1/chat/completions`, CHAT)).text()
  t.ok(statSync(join(cwd, 'data', 'control.sock')).isSocket())
  t.strictSame(openToOthers(cwd), [])
  running.child.kill('SIGTERM')
  await running.ended
  t.strictSame(openToOthers(cwd), [])
})

t.test('only the user can read locks and quarantined ledgers', async t => {
  setMask(t, 0)
  const file = join(t.testdir({}), 'data', 'ledger.db')
  const { db } = openFile(file)
  const release = acquireLock(`${file}-live-1`, 1_000)
  t.strictSame(openToOthers(dirname(dirname(file))), [])
  db.close()
  quarantineFile(file, fileIdentity(file) ?? '')
  openFile(file).db.close()
  release()
  t.strictSame(openToOthers(dirname(dirname(file))), [])
})

t.test('at the start, modes that let other users read the files are corrected and logged', async t => {
  const data = join(folder(t), 'data')
  const yaml = FULL.replace('data/ledger.db', join(data, 'ledger.db'))
  const first = await startTestGateway(t, yaml)
  await (await fetch(`${first.url}/v1/chat/completions`, CHAT)).text()
  await first.close()
  const names = readdirSync(data)
  for (const name of names) chmodSync(join(data, name), 0o644)
  chmodSync(data, 0o755)
  const second = await startTestGateway(t, yaml)
  t.strictSame(openToOthers(dirname(data)), [])
  const corrected = second.logged.filter(({ msg }) => /a mode was corrected/.test(String(msg)))
  t.strictSame(new Set(corrected.map(({ file }) => file)), new Set([data, ...names.map(name => join(data, name))]))
  t.match(corrected.find(({ file }) => file === data), { level: 40, before: '0755', mode: '0700' })
})

t.test('a shared directory and the files of others in that directory keep their modes', async t => {
  const data = join(folder(t), 'shared')
  mkdirSync(data, { mode: 0o755 })
  chmodSync(data, 0o755)
  for (const name of ['notes.txt', 'ledger.db.backup', 'ledger.db']) writeFileSync(join(data, name), '', { mode: 0o644 })
  const running = await startTestGateway(t, FULL.replace('data/ledger.db', join(data, 'ledger.db')))
  await running.close()
  const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)
  t.equal(modeOf(data), '755')
  t.equal(modeOf(join(data, 'notes.txt')), '644')
  t.equal(modeOf(join(data, 'ledger.db.backup')), '644')
  t.equal(modeOf(join(data, 'ledger.db')), '600')
})
